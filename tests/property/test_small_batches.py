"""Few records are mapped in plain Python, with the entries, reasons and row hashes of the mapping by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingestd.core.mapping import EntrySpec, Mapping, small_batch
from ingestd.core.mapping.compiled import Mapped
from ingestd.core.mapping.conversion import DateRule, PadRule, UnitRule, ValueRules
from ingestd.core.mapping.specification import ColumnSelection
from ingestd.core.record import Batch
from ingestd.sdk.formats import row_positions

Record = dict[str, str | None]
NAMES = ["part", "mass kg", "*", "^p.*$", "ä.ö"]
FACTS = {"file.name": "RUN7_b.csv", "file.stem": "", "units.mass kg": "g", "units.part": ""}
TEXTS = st.text(st.sampled_from("ab01 .-\"'\n\0ß🚀"), max_size=5)
CELLS = st.one_of(st.none(), st.just(""), st.just("n/a"), st.decimals(-99, 99, places=2).map(str), TEXTS)
# Most records make entries: a rejected record hides what the others of its example show.
FILLED = st.sampled_from(["1", "2.50", "-3", "12", "a", " B", "n/a"])
PARTS = st.sampled_from(["1", "2", "3", "4", "5", "6", "", "7\0", None])
ROW = st.fixed_dictionaries({"part": PARTS, "mass kg": FILLED}, optional=dict.fromkeys(NAMES[2:], FILLED | CELLS))
ROWS = st.lists(ROW | st.dictionaries(st.sampled_from(NAMES), CELLS), min_size=1, max_size=6)


def templates(*names: str) -> st.SearchStrategy[str]:
    texts = st.one_of(
        TEXTS, st.sampled_from([*NAMES, "file.name", "file.stem", "units.part", *names]).map("{{{}}}".format)
    )
    return st.lists(texts, min_size=1, max_size=3).map("".join)


NUMBERS = st.builds(
    ValueRules,
    missing=st.sampled_from([(), ("n/a",)]),
    decimals=st.sampled_from([None, 1]),
    unit=st.sampled_from([None, UnitRule(source="g", target="kg"), UnitRule(source="{mass kg}", target="kg")]),
)
RULES = st.builds(
    ValueRules,
    trim=st.booleans(),
    missing=st.sampled_from([(), ("n/a",), ("", "0")]),
    case=st.sampled_from([None, "upper"]),
    one_of=st.sampled_from([(), (), (("a", "A"), ("b", "B"))]),
    pattern=st.sampled_from([None, None, "[a-z]*"]),
    decimal=st.sampled_from([None, None, ",", "."]),
    unit=st.sampled_from([None, None, UnitRule(source="g", target="kg"), UnitRule(source="{units.mass kg}", target="kg")]),
    minimum=st.sampled_from([None, None, "0"]),
    decimals=st.sampled_from([None, None, 1]),
    date=st.sampled_from([None, None, DateRule(form="iso")]),
    pad=st.sampled_from([None, PadRule(width=4)]),
)  # fmt: skip
VALUE = {
    "value": st.sampled_from(["{mass kg}", "{*}", "{mass kg}{ä.ö}"]) | templates("file.part.run"),
    "columns": st.just(()),
}
COLUMNS = {"columns": st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple)}
SELECTION = {
    "selection": st.builds(ColumnSelection, match=st.sampled_from([("*",), ("part", "m*")]), excluded=st.just(("ä*",))),
    "types": st.sampled_from([(), (("part", "{mass kg}"),)]),
}
SPECS = st.lists(
    st.one_of(
        *(
            st.builds(
                EntrySpec,
                key=st.sampled_from(["{part}", "{part}.{mass kg}", "{part}/{file.part.run}"]) | templates(*more),
                type=st.sampled_from(["scalar", "{part}"]) | templates(*more),
                rules=st.just(ValueRules()) | NUMBERS | RULES,
                file_name=st.just("RUN{run}_{bench}.csv"),
                deadband=st.sampled_from([None, "1%"]),
                **kind,
            )
            for kind, more in ((VALUE, ()), (COLUMNS, ("column",)), (SELECTION, ("column",)))
        )
    ),
    min_size=1,
    max_size=2,
)


def frame_of(rows: Sequence[Record]) -> pl.DataFrame:
    """Return records as a connector yields them: a column for each name that occurs."""
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["other"]
    return pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )


def contents(mapped: Mapped) -> tuple[object, ...]:
    rejects = [(asdict(reject), row_hash) for reject, row_hash in mapped.rejects]
    return mapped.entries.schema, mapped.entries.rows(), rejects


@example(
    specs=[EntrySpec(key="{part}", value="{*}", rules=ValueRules(missing=("n/a",)))],
    rows=[{"part": "1", "*": "n/a"}, {"part": "2", "*": None}, {"part": "3", "*": ""}],
    has_locations=False,
)
@given(specs=SPECS, rows=ROWS, has_locations=st.booleans())
def test_few_records_are_mapped_as_many_records_are(
    specs: list[EntrySpec], rows: list[Record], has_locations: bool
) -> None:
    mapping, frame = Mapping(specs), frame_of(rows)
    numbers = range(2, len(rows) + 2)
    positions = pl.Series("position", [f"item {number}" for number in numbers] if has_locations else numbers)
    hashes = mapping.row_hashes(frame, FACTS)
    columns = mapping.apply_columns(frame, positions, hashes, FACTS)
    assert contents(mapping.apply(frame, positions, hashes, FACTS)) == contents(columns)


@given(specs=SPECS, parts=st.lists(ROWS, min_size=1, max_size=4))
def test_row_hashes_that_are_made_together_are_those_of_each_batch(
    specs: list[EntrySpec], parts: list[list[Record]]
) -> None:
    mapping = Mapping(specs)
    batches = [
        Batch(records=frame_of(rows), positions=row_positions(range(len(rows))), cursor={}, facts=FACTS)
        for rows in parts
    ]
    for batch, hashes in zip(batches, mapping.row_hashes_together(batches), strict=True):
        if hashes is not None:
            assert hashes.equals(mapping.row_hashes(batch.records, FACTS), check_dtypes=True, check_names=True)


def test_small_files_with_the_same_columns_are_hashed_together() -> None:
    mapping = Mapping([EntrySpec(key="{part}", value="{mass kg}")])
    frames = [frame_of([{"part": text, "mass kg": None}]) for text in "abc"] + [frame_of([{"part": "d"}])]
    batches = [Batch(records=frame, positions=row_positions([1]), cursor={}) for frame in frames]
    made = mapping.row_hashes_together(batches)
    assert [hashes is not None for hashes in made] == [True, True, True, False]
    assert len({hashes[0] for hashes in made if hashes is not None}) == 3


class NotedMapping(Mapping):
    """Notes whether records were mapped by columns."""

    used_columns = False

    def apply_columns(self, *args: Any) -> Mapped:
        self.used_columns = True
        return super().apply_columns(*args)


@pytest.mark.parametrize(
    ("spec", "records", "is_small"),
    [
        (EntrySpec(key="{a}", value="{b}"), small_batch.MAX_RECORDS, True),
        (EntrySpec(key="{a}", value="{b}"), small_batch.MAX_RECORDS + 1, False),
        (EntrySpec(key="{a}", value="{b}", where="b = 'x'"), 1, False),
        (EntrySpec(key="{a}", value="{c}", let=(("c", "UPPER(b)"),)), 1, False),
        (EntrySpec(key="{a}", expression="UPPER(b)"), 1, False),
        (EntrySpec(key="{a}.{c}", value="{c}", each=("b",)), 1, False),
    ],
    ids=["few", "many", "condition", "named expression", "expression", "children"],
)
def test_expressions_children_and_many_records_are_mapped_by_columns(
    spec: EntrySpec, records: int, is_small: bool
) -> None:
    mapping = NotedMapping([spec])
    frame = pl.DataFrame({"a": ["1"] * records, "b": ['[{"c": "x"}]'] * records})
    positions = pl.Series("position", range(records))
    mapped = mapping.apply(frame, positions, mapping.row_hashes(frame, {}), {})
    assert mapped.entries.height + len(mapped.rejects) in {0, records}
    assert mapping.used_columns is not is_small
