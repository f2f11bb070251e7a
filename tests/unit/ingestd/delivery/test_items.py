from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ingestd.delivery.items import claim_body, items_body, split_in_half, split_items
from ingestd.mirror.port import Claim, ClaimPart

ITEMS = st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=5), "value": st.text(max_size=5)}), min_size=1, max_size=4
)


def claim_of(parts: list[list[dict[str, str]]]) -> Claim:
    return Claim(
        sink=1,
        parts=tuple(
            ClaimPart(segment=number, kind="update", items=len(items), body=json.dumps(items).encode(), oldest=number)
            for number, items in enumerate(parts, start=1)
        ),
    )


@given(parts=st.lists(ITEMS, min_size=1, max_size=4))
def test_joined_and_separated_items_are_the_same_in_the_same_order(parts: list[list[dict[str, str]]]) -> None:
    claim = claim_of(parts)
    flat = [item for items in parts for item in items]
    assert json.loads(claim_body(claim)) == flat
    items = split_items(claim)
    assert [(item.key, item.value) for item in items] == [(item["key"], item["value"]) for item in flat]
    assert json.loads(items_body(items)) == flat
    assert [item.segment for item in items] == [n for n, part in enumerate(parts, start=1) for _ in part]


@given(count=st.integers(2, 9))
def test_halves_are_never_empty_and_lose_nothing(count: int) -> None:
    items = split_items(claim_of([[{"key": str(n), "value": ""} for n in range(count)]]))
    first, second = split_in_half(items)
    assert first
    assert second
    assert [*first, *second] == items


def test_an_item_keeps_its_bytes() -> None:
    body = b'[ {"key":"a", "value":"\\u00e9", "dataType":"scalar"},{"key":"b","delete":true} ]'
    items = split_items(Claim(sink=1, parts=(ClaimPart(segment=7, kind="delete", items=2, body=body, oldest=7),)))
    assert [item.raw for item in items] == [
        b'{"key":"a", "value":"\\u00e9", "dataType":"scalar"}',
        b'{"key":"b","delete":true}',
    ]
