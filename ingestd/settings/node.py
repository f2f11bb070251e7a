"""The tree of a configuration file; each value has its location in the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from ingestd.core.phrases import shortened

# The core schema of YAML 1.2, section 10.3.2: `yes` and `on` are text, `0755` is 755, `1_000` is text.
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DIGITS_AT_MOST = 300

Key: TypeAlias = str | int
Path: TypeAlias = tuple[Key, ...]


class ConfigLocation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A line and a column of the file, counted from 1."""

    line: int
    column: int


class Scalar(msgspec.Struct, frozen=True, kw_only=True):
    """One value.

    ``text``: the content. ``plain``: written without quotes or a tag. ``offsets``: for a value on one line, the distance
    of each character of ``text`` from ``location`` in columns; else empty.
    """

    location: ConfigLocation
    text: str
    plain: bool = False
    offsets: tuple[int, ...] = ()

    @property
    def value(self) -> str | int | float | bool | None:
        """The value according to YAML 1.2."""
        return resolve(self.text) if self.plain else self.text

    def location_of(self, position: int) -> ConfigLocation:
        """Return the location of the character at ``position``, or of the scalar if the character's location is unknown."""
        if not 0 <= position < len(self.offsets):
            return self.location
        return ConfigLocation(line=self.location.line, column=self.location.column + self.offsets[position])


class MappingNode(msgspec.Struct, frozen=True, kw_only=True):
    """Keys and values in the order of the file; keys are unique."""

    location: ConfigLocation
    items: tuple[tuple[Scalar, Node], ...]

    def entry(self, key: Key) -> tuple[Scalar, Node] | None:
        """Return the pair with the key ``key``."""
        return next(((name, node) for name, node in self.items if name.text == key), None)


class ListNode(msgspec.Struct, frozen=True, kw_only=True):
    """A list."""

    location: ConfigLocation
    items: tuple[Node, ...]


Node: TypeAlias = Scalar | MappingNode | ListNode


class FoundNode(msgspec.Struct, frozen=True, kw_only=True):
    """The node at a path. ``left``: the steps of the requested path that the file does not have."""

    path: Path
    node: Node
    key_location: ConfigLocation
    """The location of the key of this value; in a list, the location of the value."""
    left: Path


def find(root: Node, asked: Sequence[Key]) -> FoundNode:
    """Return the node at the path ``asked``, without the steps that the file does not have.

    Such steps have two causes. A pydantic location also names the alternatives of a union, and a file may have a single mapping
    instead of a list with one mapping.
    """
    node, key_location = root, root.location
    path: list[Key] = []
    left: list[Key] = []
    for step in asked:
        match node:
            case MappingNode() if isinstance(step, str) and (entry := node.entry(step)) is not None:
                key_location, node = entry[0].location, entry[1]
            case ListNode() if isinstance(step, int) and step < len(node.items):
                node = node.items[step]
                key_location = node.location
            case _:
                left.append(step)
                continue
        path.append(step)
    return FoundNode(path=tuple(path), node=node, key_location=key_location, left=tuple(left))


def dotted(path: Iterable[Key]) -> str:
    """Return ``pipelines[0].source`` for ``("pipelines", 0, "source")``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def resolve(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar, by the core schema of YAML 1.2."""
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if len(text) > _DIGITS_AT_MOST:
        return text
    if _INTEGER.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _FLOAT.fullmatch(text):
        return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    return text


def described(node: Node) -> str:
    """Return a phrase for an error sentence, such as: the number 007, 'abc', nothing, a list."""
    match node:
        case MappingNode():
            return described_value({})
        case ListNode():
            return described_value(node.items)
        case Scalar():
            return described_value(node.value, node.text)


def described_value(value: object, written: str | None = None) -> str:
    """Return a phrase for a plain value, for an error sentence; ``written`` is the text of the value in the file."""
    shown = shortened(str(value) if written is None else written)
    match value:
        case dict():
            return "a mapping of keys to values"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case None:
            return "nothing"
        case bool():
            return f"the truth value {shown if written is not None else shown.lower()}"
        case int() | float():
            return f"the number {shown}"
    return f"'{shown}'"
