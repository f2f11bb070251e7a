"""CSV as it is written back: rows in a given dialect, so that reading them gives every field as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from connectors.formats.csv.dialect import Dialect

_SPOKEN = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "space": " "}


def delimiter_by_name(delimiter_name: str) -> str:
    """The character that `Dialect.delimiter_name` gave a name to."""
    return _SPOKEN.get(delimiter_name, delimiter_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWriter:
    """Rows as text with their line ends."""

    dialect: Dialect
    end: str = "\r\n"

    def row(self, fields: Sequence[str]) -> str:
        """One row; where the dialect has no quotes, what would part fields or rows is written as spaces."""
        return self.dialect.delimiter.join(self._fields(fields)) + self.end

    def _fields(self, fields: Sequence[str]) -> Iterable[str]:
        quote, delimiter = self.dialect.quote, self.dialect.delimiter
        for place, field in enumerate(fields):
            if not quote:
                yield field.replace(delimiter, " ").replace("\r", " ").replace("\n", " ")
                continue
            # A row that begins with the mark of a comment, and one that is nothing but an empty field, would be none.
            odd = place == 0 and ((self.dialect.comment and field.startswith(self.dialect.comment)) or len(fields) == 1)
            if odd or any(mark in field for mark in (quote, delimiter, "\r", "\n")):
                yield quote + field.replace(quote, quote * 2) + quote
            else:
                yield field
