"""The shape of a workspace's tree, without what its blocks hold. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Place(NamedTuple):
    """Where a block is, with what lists are sorted and filtered by. ``type`` is a JSON list of strings."""

    id: str
    parent_id: str | None
    order_index: float
    label: str
    type: str
    created_at: int
    updated_at: int


class Tree:
    """A whole tree, out of one consistent view."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._places = {place.id: place for place in places}
        self._children: dict[str | None, list[Place]] = defaultdict(list)
        for place in self._places.values():
            self._children[place.parent_id].append(place)
        for children in self._children.values():
            children.sort(key=lambda place: (place.order_index, place.id))

    def __iter__(self) -> Iterator[Place]:
        """Every place: by depth, then orderIndex, then id (contract G19)."""
        level = self._children.get(None, [])
        while level:
            yield from sorted(level, key=lambda place: (place.order_index, place.id))
            level = [child for place in level for child in self._children.get(place.id, ())]

    def children(self, block_id: str) -> tuple[str, ...]:
        """The ids of a block's children in their order."""
        return tuple(place.id for place in self._children.get(block_id, ()))

    def path(self, block_id: str) -> tuple[str, ...]:
        """The ids from the root to this block."""
        path: list[str] = []
        at: str | None = block_id
        while at is not None:
            path.append(at)
            at = self._places[at].parent_id
        return tuple(reversed(path))
