"""YAML, TOML and INI text as nested mappings of text. No value is interpreted: 0.10 stays 0.10, and no stays no."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from connectors.formats.documents.flat import MOST_FIELDS, Value

_NULL = "tag:yaml.org,2002:null"
_NO_SECTION = "\x01"
_NO_DEFAULTS = "\x02"


class DocumentInvalid(ValueError):
    """The text is not of its format; the message is the end of a sentence and says where."""


def parse_yaml(text: str) -> Value:
    """The only document of a YAML text; a plain ``null``, ``~`` or nothing is None.

    Raises:
        NotParsed: it is no YAML, or more than one document.
    """
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
    except YAMLError as error:
        raise DocumentInvalid(_one_line(error)) from error
    return _Yaml().value(root) if root is not None else {}


class _Yaml:
    """Turns nodes into values; counts, since aliases can make a small text endless."""

    def __init__(self) -> None:
        self._count = 0
        self._open: set[int] = set()

    def value(self, node: Node) -> Value:
        self._count += 1
        if self._count > MOST_FIELDS:
            raise DocumentInvalid(f"has more than {MOST_FIELDS} values once its aliases are followed")
        if isinstance(node, ScalarNode):
            return None if node.tag == _NULL and node.style is None else str(node.value)
        if id(node) in self._open:
            raise DocumentInvalid("has an alias that leads back to itself")
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.value(item) for item in node.value]
            if isinstance(node, MappingNode):
                return self._mapping(node)
        finally:
            self._open.discard(id(node))
        raise DocumentInvalid(f"has a {node.tag}, which is no value")

    def _mapping(self, node: MappingNode) -> Value:
        found: dict[str, Value] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise DocumentInvalid(f"has a name that is no text (line {key.start_mark.line + 1})")
            if key.value in found:
                raise DocumentInvalid(f"names {key.value!r} twice (line {key.start_mark.line + 1})")
            found[str(key.value)] = self.value(value)
        return found


def parse_toml(text: str) -> Value:
    """A TOML document; a float keeps its characters, dates are ISO 8601.

    Raises:
        NotParsed: it is no TOML.
    """
    try:
        return _plain(tomllib.loads(text, parse_float=str))
    except tomllib.TOMLDecodeError as error:
        raise DocumentInvalid(_one_line(error)) from error


def _plain(value: Any) -> Value:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case datetime() | date() | time():
            return value.isoformat()
        case list():
            return [_plain(item) for item in value]
        case Mapping():
            return {str(name): _plain(item) for name, item in value.items()}
        case _:
            return str(value)


def parse_ini(text: str) -> Value:
    """An INI file: a mapping a section; names before the first section stand by themselves. Nothing is interpolated.

    Raises:
        NotParsed: it is no INI file, or names something twice.
    """
    parser = configparser.RawConfigParser(default_section=_NO_DEFAULTS, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their capitals
    try:
        parser.read_string(f"[{_NO_SECTION}]\n{text}")
    except configparser.Error as error:
        raise DocumentInvalid(_one_line(error).replace(repr(_NO_SECTION), "the file")) from error
    found: dict[str, Value] = dict(parser[_NO_SECTION])
    for section in parser.sections()[1:]:
        if section in found:
            raise DocumentInvalid(f"has both a name and a section {section!r}")
        found[section] = dict(parser[section])
    return found


Parser = Callable[[str], Value]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
