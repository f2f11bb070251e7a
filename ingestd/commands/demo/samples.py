"""The sample files of the demo, and their expected entries, which csv, json and sqlite3 compute without a mapping."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import msgspec

_FOLDER = files(__package__ or "") / "samples"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A file for the drop folder, its pipeline, and its expected entries.

    ``key`` is a `str.format` template over the fields of a record, ``stem`` and ``column``.
    """

    file: str
    pipeline: str
    sink: str
    key: str
    columns: tuple[str, ...]

    @property
    def text(self) -> str:
        """The content of the packaged file."""
        return (_FOLDER / self.file).read_text(encoding="utf-8")

    def entries(self, text: str) -> dict[str, str]:
        """Return the expected entries of ``text``: values by key."""
        stem = Path(self.file).stem
        records: Iterable[Mapping[str, str]]
        if self.file.endswith(".csv"):
            records = csv.DictReader(text.splitlines())
        else:
            # parse_int and parse_float keep the text of numbers.
            records = [json.loads(line, parse_int=str, parse_float=str) for line in text.splitlines()]
        return _entries(records, self.key, self.columns, stem)


SAMPLES = (
    Sample(
        file="mass-budget.csv",
        pipeline="mass-budget",
        sink="Mass budget",
        key="{part_number}.{column}",
        columns=("mass_kg", "margin_percent"),
    ),
    Sample(
        file="bench-run-0042.csv",
        pipeline="test-bench",
        sink="Test bench",
        key="{stem}.{t_s}.{column}",
        columns=("pressure_bar", "flow_g_per_s", "temperature_c", "vibration_g"),
    ),
    Sample(
        file="bill-of-materials.ndjson",
        pipeline="bill-of-materials",
        sink="Bill of materials",
        key="{part_number}.{column}",
        columns=("quantity", "unit_cost_eur", "supplier"),
    ),
)

DATABASE_SINK = "PDM"
_DATABASE_COLUMNS = ("revision", "state", "owner")


def write_configuration(folder: Path) -> Path:
    """Write the configuration and create an empty drop folder. Return the configuration's path."""
    (folder / "drop").mkdir()
    path = folder / "ingestd.yaml"
    path.write_bytes((_FOLDER / "ingestd.yaml").read_bytes())
    return path


def create_database(folder: Path) -> None:
    """Create an empty PDM database."""
    with closing(sqlite3.connect(folder / "pdm.db")) as database:
        database.executescript(_sql()[0])


def fill_database(folder: Path) -> dict[str, str]:
    """Insert the parts in one transaction, and return their expected entries."""
    with closing(sqlite3.connect(folder / "pdm.db")) as database:
        database.executescript(_sql()[1])
        rows = database.execute("SELECT number, revision, state, owner FROM part").fetchall()
    names = ("number", *_DATABASE_COLUMNS)
    return _entries([dict(zip(names, row, strict=True)) for row in rows], "{number}.{column}", _DATABASE_COLUMNS, "")


def drop(folder: Path, file: str, text: str) -> None:
    """Put a file into the drop folder atomically."""
    temporary = folder / f".{file}.new"
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(folder / "drop" / file)


def change_two_cells(text: str) -> tuple[str, list[str]]:
    """Raise the last digit of the second part's mass and of the last part's margin by one.

    Return the new text and a description of each change.
    """
    rows = list(csv.reader(text.splitlines()))
    changes = []
    for row, column, step in ((2, 3, "1"), (-1, 4, "1")):
        before = rows[row][column]
        digits = len(before.partition(".")[2])
        after = f"{float(before) + float(step) / 10**digits:.{digits}f}"
        rows[row][column] = after
        changes.append(f"{rows[row][0]}.{rows[0][column]} from {before} to {after}")
    return "\n".join(",".join(row) for row in rows) + "\n", changes


def _entries(records: Iterable[Mapping[str, str]], key: str, columns: tuple[str, ...], stem: str) -> dict[str, str]:
    return {key.format(**record, stem=stem, column=column): record[column] for record in records for column in columns}


def _sql() -> tuple[str, str]:
    create, insert = (_FOLDER / "pdm.sql").read_text(encoding="utf-8").split("INSERT", maxsplit=1)
    return create, f"INSERT{insert}"
