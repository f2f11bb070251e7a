from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.core.bodies import Body, read_body
from workspaced.core.members import Number
from workspaced.core.problems import Invalid
from workspaced.resources.blocks.tree import Tree, TreePlace
from workspaced.resources.blocks.values import BlockChanges
from workspaced.settings.model import Limits


class _Sample(Body):
    n: Annotated[Any, Number()]


def _place(number: int, parent: int | None, order: float = 0) -> TreePlace:
    return TreePlace(
        id=f"b{number:03d}",
        parent_id=None if parent is None else f"b{parent:03d}",
        order_index=order,
        label="",
        type="[]",
        created_at=0,
        updated_at=0,
    )


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 3)), max_size=40), st.randoms())
def test_a_tree_lists_every_block_once_by_depth_then_order(drawn: list[tuple[int, int]], dice: object) -> None:
    places = [_place(0, None)]
    for number, (parent, order) in enumerate(drawn, start=1):
        places.append(_place(number, parent % number, order))
    shuffled = list(places)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    tree = Tree(shuffled)
    listed = list(tree)
    assert sorted(listed) == sorted(places)
    ranks = [(len(tree.path(place.id)), place.order_index, place.id) for place in listed]
    assert ranks == sorted(ranks)
    by_id = {place.id: place for place in places}
    for place in places:
        path = tree.path(place.id)
        assert (path[0], path[-1]) == ("b000", place.id)
        assert [by_id[step].parent_id for step in path] == [None, *path[:-1]]
        children = [by_id[child] for child in tree.children(place.id)]
        assert {child.id for child in children} == {other.id for other in places if other.parent_id == place.id}
        assert children == sorted(children, key=lambda child: (child.order_index, child.id))


def test_an_empty_body_changes_nothing() -> None:
    changes, ignored = read_body(BlockChanges, {}, Limits())
    assert (changes.given(), ignored) == ({}, ())


@pytest.mark.parametrize("number", [0, 7, Decimal("0.10"), Decimal("-1e300"), 10**63])
def test_a_number_keeps_its_digits(number: int | Decimal) -> None:
    assert str(read_body(_Sample, {"n": number}, Limits())[0].n) == str(number)


@pytest.mark.parametrize("number", [True, "1", [], 10**301, -(10**4_000), Decimal("0." + "1" * 64)])
def test_an_invalid_or_too_long_number_is_rejected(number: object) -> None:
    with pytest.raises(Invalid, match=r"/n (must be|may have)"):
        read_body(_Sample, {"n": number}, Limits())
