"""Real files of the workplace as they are dropped, and their content as read by Python's own modules.

Numbers are not converted to float, so they keep the characters of the file.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

FOLDER = Path(__file__).parents[3] / "shared" / "data"
Row: TypeAlias = dict[str, str | None]


class Number(str):
    """The characters of a JSON number."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RealFile:
    """A file, and how its rows become entries. ``key``: the fields of the key; ``columns``: the fields of the values."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def dropped(self) -> str:
        """Return the name under which the file is dropped."""
        return f"{self.name.partition('.')[0]}.{'ndjson' if self.name.endswith('.json') else 'csv'}"

    @property
    def template(self) -> str:
        return "/".join(f"{{{field}}}" for field in self.key)

    def rows(self) -> list[Row]:
        """Return the records as Python's csv or json module reads them, with numbers as text."""
        if self.name.endswith(".json"):
            text = (FOLDER / self.name).read_text(encoding="utf-8")
            records: list[Row] = json.loads(text, parse_float=Number, parse_int=Number)
            return records
        with (FOLDER / self.name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file, delimiter="\t" if self.name.endswith(".tsv") else ","))

    def entries(self, rows: Sequence[Row], columns: Sequence[str]) -> dict[str, str]:
        """Return the expected entries of the sink. The last row of a key counts. A missing value has no entry."""
        made: dict[str, str] = {}
        for row in rows:
            key = self.key_of(row)
            for column in columns if key is not None else ():
                value = row[column]
                if value is not None:
                    made[f"{key}.{column}"] = str(value)
        return made

    def key_of(self, row: Row) -> str | None:
        """Return the key, or None if one of its fields is missing, so that the record is rejected."""
        parts = [row[field] for field in self.key]
        return None if None in parts else "/".join(str(part) for part in parts)

    def text(self, rows: Sequence[Row]) -> str:
        """Return the rows as CSV or NDJSON with unchanged values."""
        return _FORMS[self.dropped.rpartition(".")[2]](rows)


def _csv(rows: Sequence[Row]) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _ndjson(rows: Sequence[Row]) -> str:
    return "".join(
        "{" + ",".join(f"{json.dumps(name)}:{_token(value)}" for name, value in row.items()) + "}\n" for row in rows
    )


def _token(value: str | None) -> str:
    return value if isinstance(value, Number) else json.dumps(value)


_FORMS: Mapping[str, Callable[[Sequence[Row]], str]] = {"csv": _csv, "ndjson": _ndjson}

FILES = (
    RealFile(name="airports.csv", key=("iata",), columns=("name", "city", "state", "country", "latitude", "longitude")),
    RealFile(name="co2-concentration.csv", key=("Date",), columns=("CO2", "adjusted CO2")),
    RealFile(
        name="seattle-weather.csv", key=("date",), columns=("precipitation", "temp_max", "temp_min", "wind", "weather")
    ),
    RealFile(name="unemployment.tsv", key=("id",), columns=("rate",)),
    # Three cars occur twice: the last row of equal keys wins.
    RealFile(
        name="cars.json",
        key=("Name", "Year"),
        columns=(
            "Miles_per_Gallon",
            "Cylinders",
            "Displacement",
            "Horsepower",
            "Weight_in_lbs",
            "Acceleration",
            "Origin",
        ),
    ),
    # Penguins have no identifier, and some have no mass. Therefore many rows have the same key, and some records have no key.
    RealFile(
        name="penguins.json",
        key=("Species", "Island", "Body Mass (g)"),
        columns=("Beak Length (mm)", "Beak Depth (mm)", "Flipper Length (mm)", "Sex"),
    ),
)
