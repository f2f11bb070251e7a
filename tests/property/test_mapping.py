"""The mapping by columns has the results of a mapping record by record, on any records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.mapping import EntrySpec
from ingestd.core.mapping import Mapping as Rule
from ingestd.core.template import Field, Literal, parse_template

Record = dict[str, str | None]
# Some of the names are special to templates, to polars or to Python.
NAMES = ["part", "mass kg", "*", "^p.*$", "ä.ö", "file", "a/b", "$", "^"]
FACTS = {"file.name": "run 7.csv", "file.stem": "run 7", "file.owner": ""}
TEXTS = st.text(st.sampled_from("ab01 .-{}\"'\\,\n\0äß\u2028🚀*^$"), max_size=6)
CELLS = st.one_of(st.none(), st.just(""), TEXTS)


@dataclass(frozen=True)
class Made:
    """A template by its parts: texts, and names in one-element tuples."""

    parts: tuple[str | tuple[str], ...]

    @property
    def text(self) -> str:
        return "".join(
            "{" + part[0] + "}" if isinstance(part, tuple) else part.replace("{", "{{").replace("}", "}}")
            for part in self.parts
        )

    def names(self) -> list[str]:
        return [part[0] for part in self.parts if isinstance(part, tuple)]

    def fill(self, known: Mapping[str, str | None]) -> str | None:
        filled = [known[part[0]] if isinstance(part, tuple) else part for part in self.parts]
        return None if None in filled else "".join(str(part) for part in filled)


def templates(*more: str) -> st.SearchStrategy[Made]:
    names = st.sampled_from([*NAMES, *FACTS, *more]).map(lambda name: (name,))
    return st.lists(st.one_of(TEXTS, names), min_size=1, max_size=4).map(lambda parts: Made(tuple(parts)))


TYPES = st.one_of(st.just(Made(("scalar",))), st.sampled_from(NAMES).map(lambda name: Made(((name,),))))


@dataclass(frozen=True)
class Spec:
    key: Made
    value: Made
    columns: tuple[str, ...]
    type: Made

    @property
    def entry_spec(self) -> EntrySpec:
        value = None if self.columns else self.value.text
        return EntrySpec(key=self.key.text, value=value, columns=self.columns, type=self.type.text)

    def entries(self, record: Record) -> Iterator[tuple[str, str | None, str] | None]:
        """Return (key, value, type) of each entry, with value None if there is none; None if it cannot be addressed."""
        for column in self.columns or (None,):
            known: dict[str, str | None] = dict.fromkeys(NAMES) | record | FACTS
            if column is not None:
                known["column"] = column
            needed = [name for name in [*self.key.names(), *self.type.names()] if name not in {*FACTS, "column"}]
            key, kind = self.key.fill(known), self.type.fill(known)
            value = self.value.fill(known) if column is None else known[column]
            addressed = all(known[name] for name in needed)
            if not addressed or not key or kind is None or "\0" in key + (value or "") + kind:
                yield None
            else:
                yield key, value, kind


specs_with_columns = st.builds(
    Spec, key=templates("column"), value=st.just(Made(())), type=TYPES,
    columns=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple),
)  # fmt: skip
specs_with_value = st.builds(Spec, key=templates(), value=templates(), type=TYPES, columns=st.just(()))
specs = st.lists(st.one_of(specs_with_value, specs_with_columns), min_size=1, max_size=3)
records = st.lists(st.dictionaries(st.sampled_from(NAMES), CELLS), max_size=5)


def frame_of(rows: Sequence[Record]) -> pl.DataFrame:
    """Return records as a connector yields them: a column for each name that occurs."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    frame = pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )
    return frame if names else pl.DataFrame({"other": ["x"] * len(rows)}, schema={"other": pl.String})


@given(specs=specs, rows=records)
def test_entries_and_rejects_are_those_of_a_mapping_record_by_record(specs: list[Spec], rows: list[Record]) -> None:
    wanted, refused = [], []
    for number, row in enumerate(rows):
        made = [entry for spec in specs for entry in spec.entries(row)]
        if None in made:
            refused.append(number + 2)
            continue
        wanted += [(*entry, number + 2) for entry in made if entry is not None and entry[1] is not None]
    rule = Rule([spec.entry_spec for spec in specs])
    frame = frame_of(rows)
    positions = pl.Series("position", range(2, len(rows) + 2), dtype=pl.Int64)
    hashes = rule.row_hashes(frame, FACTS)
    mapped = rule.apply(frame, positions, hashes, FACTS)
    assert mapped.entries.select("key", "value", "data_type", "position").rows() == wanted
    assert [reject.position for reject, _ in mapped.rejects] == refused
    by_position = dict(zip(positions, hashes, strict=True))
    assert [row_hash for _, row_hash in mapped.rejects] == [by_position[position] for position in refused]
    assert mapped.entries["row_hash"].to_list() == [by_position[position] for *_, position in wanted]
    assert mapped.entries.schema == {
        "key": pl.String, "value": pl.String, "data_type": pl.String, "row_hash": pl.UInt64, "position": pl.Int64,
    }  # fmt: skip
    for reject, _ in mapped.rejects:
        assert reject.record == frame.row(int(reject.position) - 2, named=True)
        assert reject.reason


@given(specs=specs, rows=records)
def test_two_records_have_one_hash_if_all_mapped_values_are_equal(specs: list[Spec], rows: list[Record]) -> None:
    rule = Rule([spec.entry_spec for spec in specs])
    hashes = rule.row_hashes(frame_of(rows), FACTS).to_list()
    used = [tuple(row.get(name) for name in rule.fields) for row in rows]
    for first in range(len(rows)):
        for second in range(first):
            assert (hashes[first] == hashes[second]) == (used[first] == used[second])


@given(specs=specs, rows=records, cut=st.integers(0, 5))
def test_the_division_into_batches_has_no_effect(specs: list[Spec], rows: list[Record], cut: int) -> None:
    rule = Rule([spec.entry_spec for spec in specs])
    whole = rule.row_hashes(frame_of(rows), FACTS).to_list()
    pieces = [rows[:cut], rows[cut:]]
    assert [value for piece in pieces for value in rule.row_hashes(frame_of(piece), FACTS).to_list()] == whole


@given(templates())
def test_a_template_is_parsed_into_the_parts_it_was_made_of(made: Made) -> None:
    parts: list[Literal | Field] = []
    for part in made.parts:
        if isinstance(part, tuple):
            parts.append(Field(part[0]))
        elif part and parts and isinstance(parts[-1], Literal):
            parts[-1] = Literal(parts[-1].text + part)
        elif part:
            parts.append(Literal(part))
    template = parse_template(made.text)
    assert template.parts == tuple(parts)
    assert template.text == made.text
    bound = template.bind(FACTS)
    assert bound.fields == tuple(name for name in template.fields if name not in FACTS)
    assert not any(
        isinstance(a, Literal) and isinstance(b, Literal) for a, b in zip(bound.parts, bound.parts[1:], strict=False)
    )
