"""Route by the path as sent: first split at the slashes, then decode the segments (contract G16).

A router that decodes first can't distinguish ``a%2Fb`` from ``a/b``, so a key with a slash would have no path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeAlias, TypeVar
from urllib.parse import quote, unquote_to_bytes

from workspaced.core.asgi import Scope
from workspaced.core.text import normalised

Segment: TypeAlias = str | None
"""A decoded segment; None if it is not UTF-8 or contains U+0000. No resource has such a name."""

OperationT = TypeVar("OperationT")

_CACHED_BYTES = 512


def raw_path_of(scope: Scope) -> bytes:
    """Return the path as sent. If the server does not provide it, encode the decoded path again."""
    return scope.get("raw_path") or quote(scope["path"], safe="/%").encode()


def segments(raw_path: bytes) -> tuple[Segment, ...]:
    """Return the decoded segments of a raw path; ``+`` is a plus sign."""
    return _cached_split(raw_path) if len(raw_path) <= _CACHED_BYTES else _split(raw_path)


def _split(raw_path: bytes) -> tuple[Segment, ...]:
    return tuple(_decode(part) for part in raw_path.split(b"/")[1:])


# Cached, because a client that pushes values one by one sends the same path each time.
_cached_split = lru_cache(maxsize=1_024)(_split)


def _decode(part: bytes) -> Segment:
    try:
        text = unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else normalised(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Generic[OperationT]):
    """The route of a path and a method. ``operation`` None: the path supports other methods only (``allowed``)."""

    operation: OperationT | None
    names: Mapping[str, Segment]
    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shape(Generic[OperationT]):
    """The patterns of one length that have their fixed segments at the same positions.

    ``words``: the positions of the fixed segments. ``names``: the positions of the parameters.

    ``by_words`` maps the fixed segments to the operation of each method, with the names of its parameters and their positions.
    """

    words: tuple[int, ...]
    names: tuple[int, ...]
    by_words: dict[tuple[Segment, ...], dict[str, tuple[OperationT, tuple[tuple[str, int], ...]]]]


class Routes(Generic[OperationT]):
    """A table from (method, path) to operations; a literal segment has precedence over a ``{name}``."""

    def __init__(self) -> None:
        self._by_length: dict[int, list[_Shape[OperationT]]] = {}

    def add(self, method: str, path: str, operation: OperationT) -> None:
        """Add a route; ``path`` is written like ``/v1/workspace/{workspace}``."""
        pattern = path.split("/")[1:]
        named = tuple(place for place, part in enumerate(pattern) if part.startswith("{"))
        shape = self._shape(tuple(place for place in range(len(pattern)) if place not in named), named)
        offered = shape.by_words.setdefault(tuple(pattern[place] for place in shape.words), {})
        offered[method] = operation, tuple((pattern[place][1:-1], place) for place in named)

    def _shape(self, words: tuple[int, ...], names: tuple[int, ...]) -> _Shape[OperationT]:
        length = len(words) + len(names)
        shapes = self._by_length.setdefault(length, [])
        for shape in shapes:
            if shape.words == words:
                return shape
        made: _Shape[OperationT] = _Shape(words, names, {})
        shapes.append(made)
        shapes.sort(key=lambda shape: [place in shape.names for place in range(length)])
        return made

    def find(self, method: str, path: tuple[Segment, ...]) -> Match[OperationT] | None:
        """Return the route; None if no operation has such a path. HEAD uses the route of GET."""
        wanted = "GET" if method == "HEAD" else method
        methods: set[str] = set()
        for shape in self._by_length.get(len(path), ()):
            offered = shape.by_words.get(tuple([path[place] for place in shape.words]))
            if offered is None or "" in [path[place] for place in shape.names]:
                continue
            if found := offered.get(wanted):
                operation, names = found
                return Match(operation=operation, names={name: path[place] for name, place in names}, allowed=())
            methods.update(offered)
        if not methods:
            return None
        if "GET" in methods:
            methods.add("HEAD")
        return Match(operation=None, names={}, allowed=tuple(sorted(methods | {"OPTIONS"})))
