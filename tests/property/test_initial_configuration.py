"""`ingestd init` reads a table as it was written, or it asks: whatever is above the header, and in every notation."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ingestd.commands.initial_configuration.file_format import understand_file

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "windows-1252")
WORD = st.text("abdeklmnoprstuäöü", min_size=2, max_size=8)
UNITS = st.sampled_from(["kg", "mm", "[-]", "%", "", "degC"])
NOTES = st.lists(
    st.one_of(st.tuples(WORD, WORD), st.tuples(WORD), st.tuples(WORD, st.integers(0, 99).map(str)), st.just(())),
    max_size=5,
)


class Asked(Exception):
    """The command would ask a person."""


class NoOptions:
    """The decisions of a command without options and without a terminal."""

    def given(self, _option: str) -> str | None:
        return None

    def decide(self, option: str, _doubt: str, _proposal: str, /, *, choices: Sequence[str] = ()) -> NoReturn:  # noqa: ARG002
        raise Asked(option)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table as a program writes it. ``above``: the rows above the header; ``units``: a row below it, or none."""

    above: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    records: tuple[tuple[str, ...], ...]
    delimiter: str
    encoding: str

    def write(self, path: Path) -> None:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter).writerows(
            [*self.above, self.names, *([self.units] if any(self.units) else []), *self.records]
        )
        path.write_text(text.getvalue(), encoding=self.encoding, newline="")


@st.composite
def tables(draw: st.DrawFn) -> Table:
    width = draw(st.integers(2, 5))
    mark = draw(st.sampled_from(".,"))
    numbers = st.tuples(st.integers(-999, 999), st.integers(0, 99)).map(lambda pair: f"{pair[0]}{mark}{pair[1]:02}")
    cells = st.tuples(*[numbers] * (width - 1))
    rows = draw(st.lists(cells, min_size=1, max_size=20))
    return Table(
        above=tuple(draw(NOTES)),
        names=tuple(draw(st.lists(WORD, min_size=width, max_size=width, unique=True))),
        units=draw(st.one_of(st.just(()), st.tuples(st.just(""), *[UNITS] * (width - 1)))),
        records=tuple((f"P-{number}", *row) for number, row in enumerate(rows, start=1)),
        delimiter=draw(st.sampled_from(";,\t|")),
        encoding=draw(st.sampled_from(ENCODINGS)),
    )


@given(table=tables())
@settings(max_examples=40)
def test_a_table_is_read_as_it_was_written_or_its_layout_is_asked_for(table: Table) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sample.csv"
        table.write(path)
        try:
            found = understand_file(path, NoOptions())
        except Asked as asked:
            event(f"asks for {asked}")
            return
    event("reads")
    assert found.records.first.columns == list(table.names)
    assert found.records.first.rows() == list(table.records)
    commas = set(found.records.profile.decimal_commas())
    assert commas == (set(table.names[1:]) if "," in table.records[0][1] else set())
    units = {name: unit for name, unit in zip(table.names, table.units, strict=False) if unit}
    assert {name: found.records.facts.get(f"units.{name}") for name in units} == units
