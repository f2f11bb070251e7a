"""The CSV writer: rows in a given dialect, which read back with every field unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from connectors.formats.csv.dialect import Dialect

_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "space": " "}


def delimiter_by_name(delimiter_name: str) -> str:
    """Return the character of a name that `Dialect.delimiter_name` returned."""
    return _DELIMITERS.get(delimiter_name, delimiter_name)


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
            # A row that begins with the comment character would be a comment, and a row of one empty field a blank line.
            odd = index == 0 and ((self.dialect.comment and field.startswith(self.dialect.comment)) or len(fields) == 1)
            if odd or any(mark in field for mark in (quote, delimiter, "\r", "\n")):
                yield quote + field.replace(quote, quote * 2) + quote
            else:
                yield field
