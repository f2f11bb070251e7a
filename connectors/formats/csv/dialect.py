"""The dialect of a CSV file, the layout of its rows, and a writer of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from connectors.formats.column_names import DEFAULT_NAMING, Naming

_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The special characters of a CSV file, one ASCII character each; ``quote`` and ``comment`` may be empty (none).

    Inside quotes, two quotes mean one quote. A line that begins with ``comment`` counts as blank if it is not inside a record.
    An empty ``delimiter`` has to be detected.
    """

    delimiter: str = ","
    quote: str = '"'
    comment: str = ""

    @property
    def delimiter_name(self) -> str:
        """The delimiter in words."""
        return _NAMES.get(self.delimiter, self.delimiter)


COMMA = Dialect()
UNDETECTED = Dialect(delimiter="")


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Where the columns' names come from, and how records with another number of fields are treated.

    ``header_row``: the number of the first header row; None: the header is detected, and has one row. ``header_rows``: the
    number of header rows. ``columns``: the names for a file without a header. ``units_row``: the row below the header holds the
    columns' units. ``ragged``: how a record with too few fields is treated; see `connectors.formats.csv.Csv`. ``preamble``: the
    rows above the header are facts.
    """

    header_row: int | None = None
    header_rows: int = 1
    columns: tuple[str, ...] = ()
    units_row: bool = False
    ragged: Literal["reject", "fill"] = "reject"
    naming: Naming = DEFAULT_NAMING
    preamble: bool = False


DEFAULT_LAYOUT = Layout()


def delimiter_by_name(delimiter_name: str) -> str:
    """Return the character of a name that `Dialect.delimiter_name` returned."""
    return next((mark for mark, name in _NAMES.items() if name == delimiter_name), delimiter_name)


class RowWriter(msgspec.Struct, frozen=True, kw_only=True):
    """Writes rows as text with line ends."""

    dialect: Dialect
    end: str = "\r\n"

    def row(self, fields: Sequence[str]) -> str:
        """Return one row. If the dialect has no quotes, delimiters and line ends within fields become spaces."""
        return self.dialect.delimiter.join(self._fields(fields)) + self.end

    def _fields(self, fields: Sequence[str]) -> Iterable[str]:
        quote, delimiter = self.dialect.quote, self.dialect.delimiter
        for index, field in enumerate(fields):
            if not quote:
                yield field.replace(delimiter, " ").replace("\r", " ").replace("\n", " ")
                continue
            # Without quotes, a row that begins with the comment character is a comment, and a row of one empty field is blank.
            odd = index == 0 and ((self.dialect.comment and field.startswith(self.dialect.comment)) or len(fields) == 1)
            if odd or any(mark in field for mark in (quote, delimiter, "\r", "\n")):
                yield quote + field.replace(quote, quote * 2) + quote
            else:
                yield field
