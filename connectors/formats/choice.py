"""Which format a file has: as configured, else by the end of its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Literal, Protocol, TypeAlias

from connectors.formats.csv_reader import read_csv
from connectors.formats.ndjson_reader import read_ndjson
from connectors.formats.stretch import Place, Stretch
from ingestd.sdk import SourceBroken

FormatName: TypeAlias = Literal["csv", "ndjson"]


class Format(Protocol):
    """Reads a file from a place between two records, a stretch at a time; in bounded memory whatever its size."""

    def __call__(self, file: BinaryIO, name: str, *, start: Place | None = None) -> Iterator[Stretch]:
        """At least one stretch; ``name`` is the file's, for the sentence of an error.

        Raises:
            SourceBroken: the file as a whole is not of this format.
        """


FORMATS: Mapping[FormatName, Format] = {"csv": read_csv, "ndjson": read_ndjson}
SUFFIXES: Mapping[str, FormatName] = {".csv": "csv", ".ndjson": "ndjson", ".jsonl": "ndjson"}


def format_of(name: str, configured: FormatName | None) -> Format:
    """The format of the file ``name``.

    Raises:
        SourceBroken: nothing is configured and the name's end is not known.
    """
    if configured is not None:
        return FORMATS[configured]
    for suffix, format_name in SUFFIXES.items():
        if name.lower().endswith(suffix):
            return FORMATS[format_name]
    known = ", ".join(SUFFIXES)
    raise SourceBroken(f"{name}: its name ends in none of {known}. Say `format: csv` or `format: ndjson`.")
