"""Names of variables that stay valid when the server restarts: node ids with a namespace URI, and browse paths."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import Self

import msgspec

_NODE = re.compile(r"(?:nsu=(?P<uri>[^;]+);|ns=(?P<index>\d+);)?(?P<kind>[isgb])=(?P<value>.+)", re.DOTALL)
_DEEP = "**"


class NodeName(msgspec.Struct, frozen=True):
    """A node id. ``uri``: the namespace; empty: that of OPC UA itself. ``id``: the id in the namespace, such as ``s=Oven``."""

    uri: str
    id: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a node id. Raise `ValueError` if the text is not a node id, or if it names the namespace by a number."""
        found = _NODE.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no node id; it is written like nsu=urn:line-1;s=Temperature or i=2258")
        if found["index"] not in {None, "0"}:
            raise ValueError(
                f"{text!r} names a namespace by number, which may change when the server restarts: write nsu= and its URI;"
                " `ingestd check` with browse shows node ids in that form"
            )
        if found["kind"] == "i" and not found["value"].isdecimal():
            raise ValueError(f"{text!r} is no node id: i= needs a number")
        return cls(found["uri"] or "", f"{found['kind']}={found['value']}")

    def __str__(self) -> str:
        return f"nsu={self.uri};{self.id}" if self.uri else self.id


class BrowsePattern(msgspec.Struct, frozen=True):
    """A path of browse names with wildcards."""

    levels: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a pattern.

        Raises:
            ValueError: a level is empty, or has ``**`` and other characters.
        """
        levels = tuple(text.strip("/").split("/"))
        if not all(levels):
            raise ValueError(f"{text!r} has an empty level")
        if any(_DEEP in level and level != _DEEP for level in levels):
            raise ValueError(f"{text!r}: ** must be a whole level")
        return cls(levels)

    def matches(self, path: Sequence[str]) -> bool:
        """Return whether the whole path matches."""
        return _rest(self.levels, path) == "all"

    def leads_to(self, path: Sequence[str]) -> bool:
        """Return whether a node below the path may match."""
        is_open = _DEEP in self.levels or len(path) < len(self.levels)
        return is_open and _rest(self.levels, path) in {"below", "all"}


def _rest(levels: Sequence[str], path: Sequence[str]) -> str:
    """Return ``all`` if the path matches, ``below`` if a longer path may match, else the empty text."""
    if not path:
        return "all" if all(level == _DEEP for level in levels) else "below"
    if not levels:
        return ""
    first, *more = levels
    if first == _DEEP:
        found = {_rest(more, path), _rest(levels, path[1:])}
        return "all" if "all" in found else "below"
    return _rest(more, path[1:]) if fnmatch.fnmatchcase(path[0], first) else ""
