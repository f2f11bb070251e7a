"""Groups against plain Python: every function, for any records, batches and amounts of memory."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.record import Batch
from ingestd.intake.group_stage import GroupStage

NUMBERS = [
    "0",
    "-0.0",
    "1",
    "0.10",
    "0.1",
    "1e-7",
    "-3.5",
    "9999999999999999999",
    "0.000000000000000001",
    "7",
    "+2",
    ".5",
]
DATES = ["2026-11-07", "2026-11-07T00:00", "2026-11-06 23:59:59.5", "1969-01-01"]
INSTANTS = ["2026-11-07T12:00:00+01:00", "2026-11-07T11:00:00Z", "2026-11-07T11:00:00.000001Z"]
ROW = st.fixed_dictionaries(
    {
        "part": st.sampled_from(["a", "b", "c", "d", "e", "f"]),
        "run": st.sampled_from(["1", "2"]),
        "value": st.sampled_from([*NUMBERS, "", None]),
        "text": st.sampled_from(["x", "X", "10", "9", "", None]),
        "date": st.sampled_from(DATES),
        "instant": st.sampled_from(INSTANTS),
    }
)
Row = dict[str, str | None]

TAKE = {
    "first": AggregateSpec(function="first", field="value"),
    "last": AggregateSpec(function="last", field="value"),
    "oldest": AggregateSpec(function="first", field="value", order="date", compared="date"),
    "latest": AggregateSpec(function="last", field="value", order="instant", compared="instant"),
    "min": AggregateSpec(function="min", field="value"),
    "max": AggregateSpec(function="max", field="value"),
    "min_text": AggregateSpec(function="min", field="text", compared="text"),
    "sum": AggregateSpec(function="sum", field="value"),
    "mean": AggregateSpec(function="mean", field="value"),
    "mean_3": AggregateSpec(function="mean", field="value", decimals=3),
    "values": AggregateSpec(function="count", field="value"),
    "records": AggregateSpec(function="count", field=None),
}


def number(row: Row) -> Fraction:
    return Fraction(row["value"] or "")


def rounded(value: Fraction, decimals: int) -> Fraction:
    scaled = abs(value) * 10**decimals
    whole = int(scaled + Fraction(1, 2))
    return Fraction(-whole if value < 0 else whole, 10**decimals)


def expected(rows: list[Row]) -> dict[str, str | Fraction | int | None]:
    filled = [row for row in rows if row["value"]]
    texts = [row["text"] for row in rows if row["text"]]
    found: dict[str, str | Fraction | int | None] = dict.fromkeys(TAKE)
    found |= {"values": len(filled), "records": len(rows), "min_text": min(texts, default=None, key=str)}
    if filled:
        total = sum(map(number, filled))
        found |= {
            "first": filled[0]["value"],
            "last": filled[-1]["value"],
            "oldest": min(filled, key=lambda row: datetime.fromisoformat(row["date"] or ""))["value"],
            "latest": max(reversed(filled), key=lambda row: datetime.fromisoformat(row["instant"] or ""))["value"],
            "min": min(filled, key=number)["value"],
            "max": max(filled, key=number)["value"],
            "sum": Fraction(total),
            "mean": Fraction(total) / len(filled),
            "mean_3": rounded(Fraction(total) / len(filled), 3),
        }
    return found


def has_end(value: Fraction) -> bool:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


@given(
    rows=st.lists(ROW, min_size=1, max_size=40),
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=12),
    memory=st.integers(1, 30),
)
def test_each_group_has_the_exact_result_of_plain_python(rows: list[Row], sizes: list[int], memory: int) -> None:
    groups: dict[tuple[str | None, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["part"], row["run"]].append(row)
    found = grouped(rows, sizes, memory)
    assert found.keys() == groups.keys()
    for key, members in groups.items():
        for name, value in expected(members).items():
            text = found[key][name]
            if value is None or isinstance(value, str):
                assert text == value, name
                continue
            assert text is not None
            if name != "mean" or has_end(Fraction(value)):
                assert Fraction(text) == value, name
            else:
                assert abs(Fraction(text) - value) <= Fraction(1, 2 * 10**18)
                assert abs(Fraction(text) - value) <= abs(Fraction(value)) * Fraction(1, 10**14)
            assert "e" not in text.casefold()
            assert not text.startswith("-0") or Fraction(text), name
        assert found[key]["position"] == located([index + 2 for index, row in enumerate(rows) if row in members])


@given(
    rows=st.lists(ROW, min_size=1, max_size=30),
    sizes=st.lists(st.integers(0, 9), min_size=1),
    memory=st.integers(1, 20),
)
def test_the_result_and_its_order_do_not_depend_on_batches_and_memory(
    rows: list[Row], sizes: list[int], memory: int
) -> None:
    assert list(grouped(rows, sizes, memory).items()) == list(grouped(rows, [len(rows)], 1000).items())


def located(positions: list[int]) -> str:
    if len(positions) == 1:
        return f"row {positions[0]}"
    return f"rows {positions[0]} to {positions[-1]} ({len(positions)} rows)"


def grouped(
    rows: list[Row], sizes: list[int], memory: int
) -> dict[tuple[str | None, str | None], dict[str, str | None]]:
    aggregation = Aggregation(GroupSpec(by=("part", "run"), take=tuple(TAKE.items())))
    frame = pl.DataFrame(rows, schema=dict.fromkeys(["part", "run", "value", "text", "date", "instant"], pl.String))
    positions = pl.Series(range(2, len(rows) + 2), dtype=pl.Int64)
    found = {}
    with GroupStage(aggregation, Path(tempfile.gettempdir()), states_in_memory=memory) as stage:
        start, part = 0, Batch(records=frame, positions=positions, cursor={})
        for size in [*sizes, len(rows)]:
            part = Batch(records=frame[start : start + size], positions=positions[start : start + size], cursor={})
            assert stage.add(part) == ()
            start += size
        batches = list(stage.batches(part))
    assert [batch.last for batch in batches] == [False] * (len(batches) - 1) + [True]
    for batch in batches:
        for row, position in zip(batch.records.iter_rows(named=True), batch.positions, strict=True):
            assert (row["part"], row["run"]) not in found
            found[row["part"], row["run"]] = {**row, "position": position}
    return found
