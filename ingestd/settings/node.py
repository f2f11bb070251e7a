"""The tree of a configuration file; each value has its location in the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# The core schema of YAML 1.2, section 10.3.2: `yes` and `on` are text, `0755` is 755, `1_000` is text.
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DIGITS_AT_MOST = 300
_SHOWN_CHARACTERS = 60

Key: TypeAlias = str | int
Path: TypeAlias = tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ConfigLocation:
    """Line and column, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One value.

    ``text`` is what it says; ``plain``: written without quotes or a tag. ``offsets``, for a value on one line: for each
    character of ``text`` its distance in columns from ``place``; else empty.
    """

    place: ConfigLocation
    text: str
    plain: bool = False
    offsets: tuple[int, ...] = ()

    @property
    def value(self) -> str | int | float | bool | None:
        """The value by the rules of YAML 1.2."""
        return resolve(self.text) if self.plain else self.text

    def place_of(self, position: int) -> ConfigLocation:
        """Return the location of the character at ``position``; the scalar's own location if it is unknown."""
        if not 0 <= position < len(self.offsets):
            return self.place
        return ConfigLocation(line=self.place.line, column=self.place.column + self.offsets[position])


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingNode:
    """Keys and values in the order of the file; keys are unique."""

    place: ConfigLocation
    items: tuple[tuple[Scalar, Node], ...]

    def entry(self, key: Key) -> tuple[Scalar, Node] | None:
        """The pair whose key is ``key``."""
        return next(((name, node) for name, node in self.items if name.text == key), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListNode:
    """A list."""

    place: ConfigLocation
    items: tuple[Node, ...]


Node: TypeAlias = Scalar | MappingNode | ListNode


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNode:
    """The node at a path. ``left``: the rest of the path that the file does not have."""

    path: Path
    node: Node
    key_place: ConfigLocation
    """Where the key of this value stands; the value's own place in a list."""
    left: Path


def find(root: Node, asked: Sequence[Key]) -> FoundNode:
    """Return the node at the longest existing prefix of ``asked``.

    Steps that the file doesn't have are passed over: a pydantic location also names the alternatives of a union, and one
    mapping may stand for a list of one.
    """
    node, key_place = root, root.place
    path: list[Key] = []
    left: list[Key] = []
    for step in asked:
        match node:
            case MappingNode() if isinstance(step, str) and (entry := node.entry(step)) is not None:
                key_place, node = entry[0].place, entry[1]
            case ListNode() if isinstance(step, int) and step < len(node.items):
                node = node.items[step]
                key_place = node.place
            case _:
                left.append(step)
                continue
        path.append(step)
    return FoundNode(path=tuple(path), node=node, key_place=key_place, left=tuple(left))


def dotted(path: Iterable[Key]) -> str:
    """``("pipelines", 0, "source")`` as people write it: ``pipelines[0].source``."""
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
    """Describe the node for people: the number 007, 'abc', nothing, a list."""
    match node:
        case MappingNode():
            return described_value({})
        case ListNode():
            return described_value(node.items)
        case Scalar():
            return described_value(node.value, node.text)


def described_value(value: object, written: str | None = None) -> str:
    """The same for plain data; ``written`` is how the file spells it."""
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


def shortened(text: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """``text`` on one line and not too long for a sentence."""
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return line if len(line) <= limit else f"{line[:limit]}…"


def nearest(word: str, names: Iterable[str]) -> str:
    """`` Did you mean 'path'?`` with a blank in front, or nothing where no name is near."""
    near = difflib.get_close_matches(word[:_DIGITS_AT_MOST], sorted(names), n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""
