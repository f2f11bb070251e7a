"""Children of records are mapped as by plain Python, for any nested lists, with the characters of each number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingestd.core.mapping import EntrySpec, Mapping


@dataclass(frozen=True)
class Number:
    """A number by its characters."""

    text: str


Json = str | Number | bool | None | list["Json"] | dict[str, "Json"]

NUMBERS = st.sampled_from(["0.10", "-0", "1e5", "1E-07", "12345678901234567890123", "0", "-1.50", "7"]).map(Number)
SIMPLE = st.one_of(NUMBERS, st.booleans(), st.none(), st.text('xyä"\\🚀 ', max_size=3))
NAMES = st.sampled_from(["m", "p", "a", "b", "a.b", "index", "child"])
VALUES: st.SearchStrategy[Json] = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
LISTS = st.one_of(st.lists(VALUES, max_size=4), st.just(value=None), SIMPLE)
SPECS = [
    EntrySpec(key="1/{parent.id}/{index}", value="{m}", each=("parts",)),
    EntrySpec(key="2/{parent.id}/{index}", value="{a.b}", each=("parts",)),
    EntrySpec(key="3/{parent.parent.id}/{parent.index}/{index}", value="{child}", each=("parts", "p")),
    EntrySpec(key="4/{parent.parent.id}/{parent.index}/{index}", value="{parent.m}", each=("parts", "child")),
]


def written(value: Json) -> str:
    match value:
        case Number():
            return value.text
        case list():
            return "[" + ", ".join(map(written, value)) + "]"
        case dict():
            return "{" + ",".join(f"{json.dumps(name)} :{written(one)}" for name, one in value.items()) + "}"
        case _:
            return json.dumps(value)


def text_of(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else written(value)


def members(value: Json, prefix: str = "") -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield prefix + name, one
            yield from members(one, f"{prefix}{name}.")


class Rejected(Exception):
    pass


def field(value: Json, name: str) -> str | None:
    found = [one for full, one in members(value) if full == name and not isinstance(one, dict)]
    if len(found) > 1:
        raise Rejected
    return text_of(found[0]) if found else None


def items(value: Json) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Rejected
    return value


def entries_of(records: list[Json]) -> tuple[list[tuple[str, str]], set[str]]:
    """Return the entries and the positions of rejected children and records, by plain Python."""
    entries: list[tuple[int, str, str | None]] = []
    rejected: set[str] = set()
    whole: set[int] = set()
    for number, record in enumerate(records, start=1):
        try:
            children = items(record)
        except Rejected:
            whole.add(number)
            continue
        for index, child in enumerate(children, start=1):
            path = f"row {number}, at parts[{index}]"
            try:
                both = field(child, "m"), field(child, "a.b")
                entries += [(number, f"{at}/r{number}/{index}", one) for at, one in zip((1, 2), both, strict=True)]
            except Rejected:
                rejected.add(path)
            for at, nested, value in ((3, "p", None), (4, "child", "m")):
                try:
                    found = [one for full, one in members(child) if full == nested]
                    above = field(child, value) if value else None
                    inner = items(child if nested == "child" else found[-1] if found else None)
                except Rejected:
                    rejected.add(path)
                    continue
                for deep, one in enumerate(inner, start=1):
                    entries.append((number, f"{at}/r{number}/{index}/{deep}", above if value else text_of(one)))
    kept = [(key, value) for number, key, value in entries if value is not None]
    return sorted(kept), rejected | {f"{number}" for number in whole}


@example([[{"m": Number("-0")}, {"m": Number("0.10")}], [[Number("1.0")]], "x"])
@example([[{"a": {"b": "x"}, "a.b": "y"}, {"m": "x"}]])
@given(st.lists(LISTS, max_size=4))
def test_children_are_mapped_as_by_plain_python(records: list[Json]) -> None:
    mapping = Mapping(SPECS)
    frame = pl.DataFrame(
        {"id": [f"r{at}" for at in range(1, len(records) + 1)], "parts": [text_of(one) for one in records]},
        schema={"id": pl.String, "parts": pl.String},
    )
    positions = pl.Series("position", range(1, len(records) + 1), dtype=pl.Int64)
    mapped = mapping.apply(frame, positions, mapping.row_hashes(frame, {}), {})
    wanted, rejected = entries_of(records)
    assert sorted(mapped.entries.select("key", "value").rows()) == wanted
    assert {str(reject.position) for reject, _ in mapped.rejects} == rejected
    assert all(reject.reason.endswith(".") for reject, _ in mapped.rejects)


@pytest.mark.parametrize(
    ("item", "spec", "name"),
    [
        ('{"m": 1, "m": 2}', 0, "m"),
        ('{"m": 1, "n": [{"m": 3}], "m" : 2}', 0, "m"),
        ('{"m": 1, "\\u006d": 2}', 0, "m"),
        ('{"m": 1, "m": 2, "\\u0022:": 3}', 0, "m"),
        ('{"m": 1, "m": {}}', 0, "m"),
        ('{"m": null, "m": null}', 0, "m"),
        ('{"a": {"b": 1, "b": 2}}', 1, "a.b"),
        ('{"a": {"b": 1}, "a": {"b": 2}}', 1, "a"),
        ('{"p": [1], "p": [2]}', 2, "p"),
    ],
)
def test_an_item_with_a_needed_name_twice_is_rejected_alone(item: str, spec: int, name: str) -> None:
    good = '{"m": "4", "n": [{"m": 3}], "p": ["4"], "a": {"b": "4"}, "x": 1, "x": 2, "\\u00fc": "m\\":"}'
    mapping = Mapping([SPECS[spec]])
    frame = pl.DataFrame({"id": ["r"], "parts": [f"[{item}, {good}]"]})
    positions = pl.Series("position", [1], dtype=pl.Int64)
    mapped = mapping.apply(frame, positions, mapping.row_hashes(frame, {}), {})
    assert mapped.entries["value"].to_list() == ["4"]
    assert [(str(reject.position), reject.reason) for reject, _ in mapped.rejects] == [
        ("row 1, at parts[1]", f"The child has two fields with the name '{name}'.")
    ]
