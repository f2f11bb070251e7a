"""CSV as a format that can be configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from connectors.formats.csv.reader import read_csv
from connectors.formats.format import Format
from connectors.formats.stretch import Stretch


class Csv(Format):
    """Comma-separated values with a header row."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv",)

    type: Literal["csv"] = "csv"

    def read(self, file: BinaryIO, name: str) -> Iterator[Stretch]:
        """As `connectors.formats.csv.reader.read_csv`."""
        return read_csv(file, name)
