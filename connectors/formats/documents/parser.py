"""The parsers of YAML and TOML, and the flat record of a document. The parser of INI is in `connectors.formats.documents.ini`.

Values are not converted: ``0.10`` stays ``0.10``, and ``no`` stays ``no``. Both libraries need time that is quadratic in
the depth of the document, so the depth is checked before they run.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, TypeAlias

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from connectors.formats.name_limit import NameLimit
from ingestd.sdk import SourceBroken

DocumentValue: TypeAlias = "str | Sequence[DocumentValue] | Mapping[str, DocumentValue] | None"

MOST_FIELDS = 100_000
"""The limit for the fields of a document. Nested aliases can expand a small text to billions of values."""

MOST_DEPTH = 100
"""The limit for brackets that are open in one line of YAML, and for the parts of a dotted name of TOML."""

_NULL = "tag:yaml.org,2002:null"
_BRACKETS = re.compile(r"[\[\]{}\n]")
_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_NAME = re.compile(rf"(?<![A-Za-z0-9_\\-])(?:{_KEY_PART}){{{MOST_DEPTH}}}")
_FINE_TIME = r":[0-9]{2}\.[0-9]{6}0*+[1-9]"
_FINE_TIMES = re.compile(
    r'''"""(?:[^\\"]|\\.|"(?!""))*+(?:"{3,5})?|"(?:[^"\\\n]|\\.)*+"?|'''
    r"""'''(?:[^']|'(?!''))*+(?:'{3,5})?|'[^'\n]*+'?|#[^\n]*+|"""
    rf"(?P<time>{_FINE_TIME})",
    re.DOTALL,
)
"""Matches strings and comments of a valid TOML text, and (group ``time``) times with more digits than `datetime` has."""

Parser: TypeAlias = Callable[[str], DocumentValue]


class DocumentInvalid(ValueError):
    """The text is not valid in its format. The text of the exception is the end of a sentence, with the line."""


def parse_yaml(text: str) -> DocumentValue:
    """Parse a YAML text with one document. A plain ``null``, ``~`` or an empty value is None.

    Raises:
        DocumentInvalid: the text is no YAML, or has more than one document.
    """
    _check_brackets(text)
    yaml = YAML(typ="safe", pure=True)
    yaml.composer.warn_double_anchors = False  # YAML permits a second definition of an anchor
    try:
        root = yaml.compose(text)
        return _NodeConverter().value(root) if root is not None else {}
    except (YAMLError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DocumentInvalid(_one_line(error)) from error


def _check_brackets(text: str) -> None:
    """Check that no line has too many open brackets.

    Until a line ends, the parser keeps each bracket as the possible beginning of a name.
    """
    depth, line = 0, 1
    for found in _BRACKETS.finditer(text):
        if (mark := found[0]) == "\n":
            depth, line = 0, line + 1
        elif mark in "[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise DocumentInvalid(
                    f"it is nested too deeply: more than {MOST_DEPTH} brackets are open in line {line}"
                )
        else:
            depth = max(0, depth - 1)


class _NodeConverter:
    """Converts nodes to values. Limits the number of values, because aliases can expand a small text."""

    def __init__(self) -> None:
        self._count = 0
        self._open: set[int] = set()

    def value(self, node: Node) -> DocumentValue:
        self._count += 1
        if self._count > MOST_FIELDS:
            raise DocumentInvalid(f"it has more than {MOST_FIELDS} values after its aliases are resolved")
        if isinstance(node, ScalarNode):
            return None if node.tag == _NULL and node.style is None else str(node.value)
        if id(node) in self._open:
            raise DocumentInvalid("it has an alias that contains itself")
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.value(item) for item in node.value]
            if isinstance(node, MappingNode):
                return self._mapping(node)
        finally:
            self._open.discard(id(node))
        raise DocumentInvalid(f"it has a {node.tag}, which is no value")

    def _mapping(self, node: MappingNode) -> DocumentValue:
        found: dict[str, DocumentValue] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise DocumentInvalid(f"it has a name that is no text (line {key.start_mark.line + 1})")
            if key.value in found:
                raise DocumentInvalid(f"it names {key.value!r} twice (line {key.start_mark.line + 1})")
            found[str(key.value)] = self.value(value)
        return found


def parse_toml(text: str) -> DocumentValue:
    """Parse a TOML document. A float keeps its characters except underscores, dates follow ISO 8601.

    Raises:
        DocumentInvalid: the text is no TOML.
    """
    if (found := _LONG_NAME.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise DocumentInvalid(f"a name has more than {MOST_DEPTH} parts (line {line})")
    try:
        document = _to_text(tomllib.loads(text, parse_float=lambda number: number.replace("_", "")))
    except tomllib.TOMLDecodeError as error:
        raise DocumentInvalid(_one_line(error)) from error
    except ValueError as error:
        digits = sys.get_int_max_str_digits()
        raise DocumentInvalid(f"it holds an integer of more than {digits} digits; write it as text") from error
    _check_times(text)
    return document


def _check_times(text: str) -> None:
    """Check that no time lost digits: `tomllib` ignores all digits after the sixth digit of a fraction."""
    if re.search(_FINE_TIME, text) is None:
        return
    for found in _FINE_TIMES.finditer(text):
        if found["time"] is not None:
            line = text.count("\n", 0, found.start()) + 1
            raise DocumentInvalid(
                f"a time has more than 6 digits after the second; write it as text, in quotes (line {line})"
            )


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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def flatten(document: DocumentValue, name: str, length: int) -> dict[str, str | None]:
    """Return the record of a document of ``length`` characters. ``name`` names the file in errors.

    Raises:
        SourceBroken: the document is no mapping, is empty, or two of its joined names are equal.
        NamesTooLong: its joined names are too long.
    """
    record: dict[str, str | None] = {}
    if isinstance(document, Mapping):
        _add_fields(record, document, "", name, NameLimit(lambda: length))
    if not record:
        raise SourceBroken(f"{name} holds no names with values, so it has no record.")
    return record


def _add_fields(
    record: dict[str, str | None], part: Mapping[str, DocumentValue], prefix: str, name: str, limit: NameLimit
) -> None:
    limit.add(len(part) * len(prefix))
    for key, value in part.items():
        full = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _add_fields(record, value, f"{full}.", name, limit)
            continue
        if full in record:
            raise SourceBroken(f"{name} has two values with the name {full!r} after nested names are joined by dots.")
        if len(record) >= MOST_FIELDS:
            raise SourceBroken(f"{name} has more than {MOST_FIELDS} values, the limit for a record.")
        record[full] = value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
