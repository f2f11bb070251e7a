"""The tree of a workspace's blocks, without their contents. Performs no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class TreePlace(NamedTuple):
    """The place of a block in the tree, and the members for sorting and filtering lists. ``type`` is a JSON list."""

    id: str
    parent_id: str | None
    order_index: float
    label: str
    type: str
    created_at: int
    updated_at: int


class Tree:
    """The tree of one workspace."""

    def __init__(self, places: Iterable[TreePlace]) -> None:
        self._places = {place.id: place for place in places}
        self._children: dict[str | None, list[TreePlace]] = defaultdict(list)
        for place in self._places.values():
            self._children[place.parent_id].append(place)
        for children in self._children.values():
            children.sort(key=lambda place: (place.order_index, place.id))

    def __iter__(self) -> Iterator[TreePlace]:
        """Yield every place, sorted by depth, orderIndex and id (contract G19)."""
        level = self._children.get(None, [])
        while level:
            yield from sorted(level, key=lambda place: (place.order_index, place.id))
            level = [child for place in level for child in self._children.get(place.id, ())]

    def children(self, block_id: str) -> tuple[str, ...]:
        """Return the ids of a block's children in their order."""
        return tuple(place.id for place in self._children.get(block_id, ()))

    def path(self, block_id: str) -> tuple[str, ...]:
        """Return the ids on the path from the root to a block."""
        path: list[str] = []
        following: str | None = block_id
        while following is not None:
            path.append(following)
            following = self._places[following].parent_id
        return tuple(reversed(path))
