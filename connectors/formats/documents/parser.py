"""The parsers of YAML, TOML and INI: nested mappings of text.

No value is interpreted: 0.10 stays 0.10, and no stays no.
"""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from connectors.formats.documents.flat_record import MOST_FIELDS, DocumentValue

_NULL = "tag:yaml.org,2002:null"
_NO_SECTION = "\x01"
_NO_DEFAULTS = "\x02"


class DocumentInvalid(ValueError):
    """The text is not of its format. The message is the end of a sentence, with the line."""


def parse_yaml(text: str) -> DocumentValue:
    """Parse a YAML text with one document. A plain ``null``, ``~`` or an empty value is None.

    Raises:
        DocumentInvalid: the text is no YAML, or has more than one document.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
    except YAMLError as error:
        raise DocumentInvalid(_one_line(error)) from error
    return _NodeConverter().value(root) if root is not None else {}


class _NodeConverter:
    """Converts nodes to values, and counts them, because aliases can make a small text endless."""

    def __init__(self) -> None:
        self._count = 0
        self._open: set[int] = set()

    def value(self, node: Node) -> DocumentValue:
        self._count += 1
        if self._count > MOST_FIELDS:
            raise DocumentInvalid(f"has more than {MOST_FIELDS} values once its aliases are followed")
        if isinstance(node, ScalarNode):
            return None if node.tag == _NULL and node.style is None else str(node.value)
        if id(node) in self._open:
            raise DocumentInvalid("has an alias that contains itself")
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.value(item) for item in node.value]
            if isinstance(node, MappingNode):
                return self._mapping(node)
        finally:
            self._open.discard(id(node))
        raise DocumentInvalid(f"has a {node.tag}, which is no value")

    def _mapping(self, node: MappingNode) -> DocumentValue:
        found: dict[str, DocumentValue] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise DocumentInvalid(f"has a name that is no text (line {key.start_mark.line + 1})")
            if key.value in found:
                raise DocumentInvalid(f"names {key.value!r} twice (line {key.start_mark.line + 1})")
            found[str(key.value)] = self.value(value)
        return found


def parse_toml(text: str) -> DocumentValue:
    """Parse a TOML document. A float keeps its characters, dates follow ISO 8601.

    Raises:
        DocumentInvalid: the text is no TOML.
    """
    try:
        return _to_text(tomllib.loads(text, parse_float=str))
    except tomllib.TOMLDecodeError as error:
        raise DocumentInvalid(_one_line(error)) from error


def _to_text(value: Any) -> DocumentValue:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case datetime() | date() | time():
            return value.isoformat()
        case list():
            return [_to_text(item) for item in value]
        case Mapping():
            return {str(name): _to_text(item) for name, item in value.items()}
        case _:
            return str(value)


def parse_ini(text: str) -> DocumentValue:
    """Parse an INI file: a mapping for each section, beside the names before the first section.

    Nothing is interpolated.

    Raises:
        DocumentInvalid: the text is no INI file, or a name occurs twice.
    """
    parser = configparser.RawConfigParser(default_section=_NO_DEFAULTS, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    try:
        parser.read_string(f"[{_NO_SECTION}]\n{text}")
    except configparser.Error as error:
        raise DocumentInvalid(_one_line(error).replace(repr(_NO_SECTION), "the file")) from error
    found: dict[str, DocumentValue] = dict(parser[_NO_SECTION])
    for section in parser.sections()[1:]:
        if section in found:
            raise DocumentInvalid(f"has both a name and a section {section!r}")
        found[section] = dict(parser[section])
    return found


Parser = Callable[[str], DocumentValue]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
