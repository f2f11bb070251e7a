"""Templates with value rules, units, types, parts of names and dead-bands make the entries and reasons of plain Python."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf
from collections.abc import Sequence
from dataclasses import asdict

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ingestd.core.mapping import EntrySpec, Mapped, Mapping
from ingestd.core.mapping.conversion import DateRule, PadRule, UnitRule, ValueRefused, ValueRules
from ingestd.core.mapping.rule_group import EntryRule, RuleGroup, compile_group, fault_reason, refusal_reason
from ingestd.core.mapping.specification import ColumnSelection
from ingestd.core.normal_form import nfc
from ingestd.core.record import Batch
from ingestd.core.template import Literal, Template
from ingestd.sdk.formats import row_positions

Record = dict[str, str | None]
NAMES = ["part", "mass kg", "*", "^p.*$", "ä.ö"]
FACTS = {"file.name": "RUN7_b.csv", "file.stem": "", "units.mass kg": "g", "units.part": ""}
TEXTS = st.text(st.sampled_from("ab01 .-\"'\n\0ß🚀"), max_size=5)
CELLS = st.one_of(st.none(), st.just(""), st.just("n/a"), st.decimals(-99, 99, places=2).map(str), TEXTS)
# Most records make entries: a rejected record hides what the other records of its example show.
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


def positions_of(rows: Sequence[Record], has_locations: bool) -> pl.Series:
    numbers = range(2, len(rows) + 2)
    return pl.Series("position", [f"item {number}" for number in numbers] if has_locations else numbers)


Entry = tuple[str, str, str, str | None]
"""Key, value, data type and dead-band."""


def entries_of(record: Record, specs: Sequence[EntrySpec], columns: Sequence[str]) -> list[Entry] | tuple[str, str]:
    """Return the entries of one record, or why it is rejected and the field."""
    entries: list[Entry] = []
    refusals: list[tuple[str, str]] = []
    known = {**{name: text for name, text in FACTS.items() if name.startswith("units.")}, **record}
    for spec in specs:
        group = compile_group(spec, None, columns)
        for rule in group.rules:
            entry = _entry_of(known, group, rule)
            if isinstance(entry, tuple) and len(entry) == 2:
                refusals.append(entry)
            elif entry is not None:
                entries.append(entry)
    return refusals[0] if refusals else entries


def _entry_of(record: MappingOf[str, str | None], group: RuleGroup, rule: EntryRule) -> Entry | tuple[str, str] | None:
    bound = group.facts(FACTS)
    key, value, data_type, unit = (one.bind(bound) for one in (rule.key, rule.value, rule.type, rule.unit))
    made, text, kind = filled(key, record), filled(value, record), filled(data_type, record)
    needed = {name: record.get(name) for name in (*key.fields, *data_type.fields)}
    if not made or kind is None or not all(needed.values()) or "\0" in made + (text or "") + kind:
        return fault_reason(key, data_type, made, needed)
    if text is not None and group.values is not None:
        try:
            text = group.values.convert(text, filled(unit, record))
        except ValueRefused as refused:
            fields = group.columns_of(rule.value.fields)
            return refusal_reason(refused, fields[0] if fields else "")
    return None if text is None else (nfc(made), text, kind, group.deadband)


def filled(template: Template, record: MappingOf[str, str | None]) -> str | None:
    """Return a template with the fields of a record; None if one is absent."""
    parts = [part.text if isinstance(part, Literal) else record.get(part.name) for part in template.parts]
    return None if None in parts else "".join(str(part) for part in parts)


@example(
    specs=[EntrySpec(key="{part}", value="{*}", rules=ValueRules(missing=("n/a",)))],
    rows=[{"part": "1", "*": "n/a"}, {"part": "2", "*": None}, {"part": "3", "*": ""}],
    has_locations=False,
)
@given(specs=SPECS, rows=ROWS, has_locations=st.booleans())
def test_records_are_mapped_by_columns_as_one_by_one(
    specs: list[EntrySpec], rows: list[Record], has_locations: bool
) -> None:
    mapping, frame = Mapping(specs), frame_of(rows)
    positions = positions_of(rows, has_locations)
    hashes = mapping.row_hashes(frame, FACTS)
    mapped = mapping.apply(frame, positions, hashes, FACTS)
    entries, rejects = [], []
    for record, position, row_hash in zip(frame.iter_rows(named=True), positions, hashes, strict=True):
        found = entries_of(record, specs, frame.columns)
        if isinstance(found, tuple):
            rejects.append((position, *found, record, row_hash))
        else:
            entries += [(*one, row_hash, position) for one in found]
    has_deadband = any(spec.deadband is not None for spec in specs)
    names = ["key", "value", "data_type", *(["deadband"] if has_deadband else []), "row_hash", "position"]
    assert sorted(mapped.entries.columns) == sorted(names)
    assert mapped.entries.select(names).rows() == [one if has_deadband else (*one[:3], *one[4:]) for one in entries]
    assert [(one.position, one.reason, one.field, one.record, row_hash) for one, row_hash in mapped.rejects] == rejects


def contents(mapped: Mapped) -> tuple[object, ...]:
    rejects = [(asdict(reject), row_hash) for reject, row_hash in mapped.rejects]
    return mapped.entries.schema, mapped.entries.rows(), rejects


@given(specs=SPECS, parts=st.lists(ROWS, min_size=2, max_size=4), has_locations=st.booleans())
def test_batches_that_are_mapped_together_are_mapped_as_each_alone(
    specs: list[EntrySpec], parts: list[list[Record]], has_locations: bool
) -> None:
    of_file = [spec for spec in specs if "{file." not in str(spec)]  # what uses facts of a file is mapped alone
    mapping = Mapping(
        [replace(spec, file_name=None) for spec in of_file] or [EntrySpec(key="{part}", value="{mass kg}")]
    )
    batches = [
        Batch(
            records=frame_of([dict.fromkeys(NAMES) | row for row in rows]),
            positions=positions_of(rows, has_locations), cursor={}, facts=FACTS,
        )
        for rows in parts
    ]  # fmt: skip
    for batch, found in zip(batches, mapping.map_together(batches), strict=True):
        if found is not None:
            hashes = mapping.row_hashes(batch.records, FACTS)
            assert found.hashes.equals(hashes, check_dtypes=True, check_names=True)
            alone = mapping.apply(batch.records, batch.positions, hashes, FACTS)
            assert contents(found.mapped) == contents(alone)


def test_small_files_with_the_same_columns_are_mapped_together() -> None:
    mapping = Mapping([EntrySpec(key="{part}", value="{mass kg}")])
    frames = [frame_of([{"part": text, "mass kg": None}]) for text in "abc"] + [frame_of([{"part": "d"}])]
    batches = [Batch(records=frame, positions=row_positions([1]), cursor={}) for frame in frames]
    made = mapping.map_together(batches)
    assert [found is not None for found in made] == [True, True, True, False]
    assert len({found.hashes[0] for found in made if found is not None}) == 3
