from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workspaced.core.json_body import decode
from workspaced.core.problems import Invalid
from workspaced.resources.data_sinks.mass_body import (
    Bulk,
    Single,
    _plain_keys,
    _read_bulk,
    _read_bulk_fast,
    _read_single,
    _read_single_fast,
    read_mass,
)
from workspaced.resources.data_sinks.mass_store import rounds
from workspaced.resources.data_sinks.values import Change
from workspaced.settings.model import Limits

LIMITS = Limits(bulk_items=20, value_bytes=64)
TEXTS = st.one_of(
    st.sampled_from(
        ["a", "b.mass", " a", "a ", ".", "..", "", "ö", "o\u0308", "a b", "a/b", "\t", "x" * 255, "x" * 256]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
)
ITEMS = st.dictionaries(
    st.sampled_from(["key", "value", "dataType", "id", "observedAt", "delete", "unit"]),
    st.one_of(
        TEXTS,
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from(["scalar", "not a type", "123E4567-e89b-12d3-a456-426614174000", "2026-05-01T12:00:00Z"]),
    ),
)
GOOD = st.fixed_dictionaries(
    {"key": TEXTS, "value": TEXTS}, optional={"dataType": st.just("text"), "delete": st.booleans()}
)


@given(st.lists(st.one_of(GOOD, ITEMS), max_size=6), st.booleans())
@example(items=[{"key": "a", "value": "x" * 255, "delete": True}], enveloped=False)
def test_the_strict_parser_gives_the_result_of_the_fast_parser(items: list[dict[str, Any]], enveloped: bool) -> None:
    body = json.dumps({"entries": items} if enveloped else items).encode()
    fast = _read_bulk_fast(body, LIMITS)
    if fast is not None:
        careful = _read_bulk(decode(body), LIMITS)
        assert careful.faults == {}
        assert (list(fast.changes), fast.enveloped) == (list(careful.changes), careful.enveloped)


@given(st.one_of(GOOD, ITEMS))
def test_the_strict_parser_gives_the_result_of_the_fast_parser_for_single_entries(item: dict[str, Any]) -> None:
    body = json.dumps(item).encode()
    fast = _read_single_fast(body, LIMITS)
    if fast is not None:
        assert fast == _read_single(dict(item), LIMITS, None)


@given(GOOD)
def test_the_fast_parser_accepts_every_plain_single_entry(item: dict[str, Any]) -> None:
    fast = _read_single_fast(json.dumps(item).encode(), LIMITS)
    if fast is None:
        odd = item.get("delete") or "\0" in item["key"] + item["value"] or len(item["value"]) * 4 > LIMITS.value_bytes
        assert odd or not _plain_keys([item["key"]], LIMITS)


def test_the_fast_parser_accepts_requests_of_a_daemon() -> None:
    items = [
        {"key": "Größe 1.mass", "value": "0.10", "dataType": "scalar"},
        {"key": "b", "delete": True},
        {"key": "c", "value": "ö", "observedAt": "2026-05-01T12:00:00Z", "id": "123E4567-e89b-12d3-a456-426614174000"},
    ]
    fast = _read_bulk_fast(json.dumps(items, ensure_ascii=False).encode(), LIMITS)
    assert fast
    assert list(fast.changes) == [
        ("Größe 1.mass", "0.10", "scalar", None, None, False, None),
        ("b", None, None, None, None, True, None),
        ("c", "ö", None, "123e4567-e89b-12d3-a456-426614174000", 1_777_636_800_000_000, False, None),
    ]


def test_the_strict_parser_reports_every_mistake_of_every_item() -> None:
    bulk = read_mass(b'[{"key":1,"value":2},{"key":"k","value":"v"},{"value":"v","id":"x"}]', LIMITS, key=None)
    assert isinstance(bulk, Bulk)
    assert {index: [one.pointer for one in mistakes] for index, mistakes in bulk.faults.items()} == {
        0: ["/0/value", "/0/key"],
        2: ["/2/key", "/2/id"],
    }
    assert [change is None for change in bulk.changes] == [True, False, True]


def test_one_object_is_the_single_form() -> None:
    single = read_mass(b' {"key":"mass","value":"15 kg","entrys":[]} ', LIMITS, key=None)
    assert isinstance(single, Single)
    assert (single.change[:2], single.ignored) == (("mass", "15 kg"), ("entrys",))


@pytest.mark.parametrize("count", [0, 21])
def test_the_number_of_items_has_a_minimum_and_a_maximum(count: int) -> None:
    with pytest.raises(Invalid):
        read_mass(json.dumps([{"key": str(n), "value": ""} for n in range(count)]).encode(), LIMITS, key=None)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9).map(str)), max_size=12))
def test_groups_keep_the_order_of_each_key_and_have_no_key_twice(pairs: list[tuple[str, str]]) -> None:
    changes = [Change(key, value, None, None, None, remove=False) for key, value in pairs]
    parts = rounds(changes)
    for part in parts:
        keys = [change[0] for change in part]
        assert keys == sorted(set(keys))
    for key in "abcd":
        in_order = [change for part in parts for change in part if change[0] == key]
        assert in_order == [change for change in changes if change[0] == key]
