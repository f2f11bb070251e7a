"""Reads the typed columns of a file: makes chunks of text, and records which columns can't be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import polars as pl

from connectors.formats.columnar.text import ColumnNotText, Leaf, text_expression
from ingestd.sdk import SourceBroken, UnreadableColumn
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation, row_positions

ROWS = 50_000
"""The maximum number of rows in a chunk, and in a group of small parts of a file that are read together."""
PART_BYTES = 64 * 2**20
"""The maximum number of bytes of values that are read at a time. A single larger part is read as a whole."""
_REASON_CHARACTERS = 200

T = TypeVar("T")
Load = Callable[[Sequence[int]], pl.DataFrame]


def group_parts(items: Iterable[T], rows: Callable[[T], int], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield groups of consecutive parts of a file. The parts of a group are read together.

    A group has at most `ROWS` rows and `PART_BYTES` bytes, or is a single part.
    """
    group: list[T] = []
    group_rows = group_size = 0
    for item in items:
        if group and (group_rows + rows(item) > ROWS or group_size + size(item) > PART_BYTES):
            yield group
            group, group_rows, group_size = [], 0, 0
        group.append(item)
        group_rows, group_size = group_rows + rows(item), group_size + size(item)
    if group:
        yield group


class ColumnsDamaged(Exception):
    """Columns can't be read. The text of the exception is a clause with the reason."""


_READING_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, ColumnsDamaged, ValueError, OverflowError)
"""The exceptions for damaged or unknown content. A panic of polars is no `Exception`."""


class ColumnsRead:
    """Reads the columns of one file, which are identified by their numbers. Counts the rows, and makes chunks of frames."""

    def __init__(self, name: str, columns: Sequence[str], leaves: Sequence[Sequence[Leaf]], *, rows: int) -> None:
        """``columns``: the names of the columns.

        ``leaves``: see `text_expression`. ``rows``: the number of rows by the file's metadata.
        """
        self._name = name
        self._columns = columns
        self._leaves = leaves
        self._rows = rows
        self._location = RecordLocation()
        self._refused: dict[int, str] = {}
        counts = Counter(columns)
        for number, column in enumerate(columns):
            if counts[column] > 1:
                self.refuse(number, "the file has several columns of this name")

    def refuse(self, number: int, reason: str) -> None:
        """Exclude a column from all further chunks. ``reason``: a clause for messages."""
        self._refused.setdefault(number, reason)

    def read(self, load: Load, rows: int) -> Iterator[RecordChunk]:
        """Yield the next rows as chunks. Refuse columns that can't be read, or can't be written as text.

        ``load`` gets the numbers of columns, and returns ``rows`` rows of these columns. It may raise any exception of polars.

        Raises:
            SourceBroken: no column is left.
        """
        frame = self._loaded(load, rows)
        for start in range(0, frame.height, ROWS):
            yield self._chunk(frame[start : start + ROWS])

    def end(self) -> Iterator[RecordChunk]:
        """Yield an empty chunk if no rows were read."""
        if not self._location.row:
            names = [self._columns[number] for number in self._required()]
            yield self._built(pl.DataFrame(schema=dict.fromkeys(names, pl.String)), ())

    def _loaded(self, load: Load, rows: int) -> pl.DataFrame:
        """Return the rows of all readable columns, named by their numbers."""
        while True:
            numbers = self._required()
            try:
                frame = _frame(load, numbers, rows)
            except _READING_ERRORS as error:
                self._refuse_damaged(load, rows, numbers, error)
            else:
                frame.columns = [str(number) for number in numbers]
                return frame

    def _refuse_damaged(self, load: Load, rows: int, numbers: Sequence[int], error: BaseException) -> None:
        """Read each column alone, and refuse the columns for which this fails."""
        if len(numbers) == 1:
            self.refuse(numbers[0], _clause(error))
            return
        for number in numbers:
            try:
                _frame(load, [number], rows)
            except _READING_ERRORS as own:
                self.refuse(number, _clause(own))
        if self._readable() == numbers:
            raise SourceBroken(f"The columns of {self._name} can't be read together: {_clause(error)}.") from error

    def _readable(self) -> Sequence[int]:
        return [number for number in range(len(self._columns)) if number not in self._refused]

    def _required(self) -> Sequence[int]:
        """Return the numbers of the readable columns; raise `SourceBroken` if there are none."""
        numbers = self._readable()
        if not numbers:
            reasons = [f"column '{self._columns[number]}': {why}" for number, why in self._refused.items()]
            raise SourceBroken(
                f"{self._name} has no column that can be read ({'; '.join(reasons[:3]) or 'it has no columns'})."
            )
        return numbers

    def _chunk(self, frame: pl.DataFrame) -> RecordChunk:
        texts = self._texts(frame)
        unreadable: list[UnreadableColumn] = []
        for column in texts.columns:
            if texts[column].null_count() > frame[column].null_count():
                rows = (texts[column].is_null() & frame[column].is_not_null()).arg_true()
                unreadable.append(
                    UnreadableColumn(
                        name=self._columns[int(column)], reason=_value_reason(frame[column]), rows=tuple(rows)
                    )
                )
        return self._built(texts.rename(lambda column: self._columns[int(column)]), unreadable)

    def _texts(self, frame: pl.DataFrame) -> pl.DataFrame:
        expressions: dict[int, pl.Expr] = {}
        for column, kind in frame.schema.items():
            number = int(column)
            try:
                expressions[number] = text_expression(column, kind, self._leaves[number])
            except ColumnNotText as error:
                self.refuse(number, f"it holds {error}, which has no text form")
        try:
            return frame.select(expressions.values())
        except _READING_ERRORS:
            series: list[pl.Series] = []
            for number, expression in expressions.items():
                try:
                    series.append(frame.select(expression).to_series())
                except _READING_ERRORS as error:
                    self.refuse(number, _clause(error))
            self._required()
            return pl.DataFrame(series)

    def _built(self, records: pl.DataFrame, values: Sequence[UnreadableColumn]) -> RecordChunk:
        start = self._location
        self._location = RecordLocation(offset=start.offset + records.height, row=start.row + records.height)
        refused = [
            UnreadableColumn(name=self._columns[number], reason=reason) for number, reason in self._refused.items()
        ]
        return RecordChunk(
            records=records,
            positions=row_positions(range(start.row + 1, self._location.row + 1)),
            end=self._location,
            header=True,
            total=self._rows,
            unreadable=(*refused, *values),
        )


def _frame(load: Load, numbers: Sequence[int], rows: int) -> pl.DataFrame:
    try:
        frame = load(numbers)
    except OSError as error:
        if error.errno is not None:
            raise  # the disk failed; an error of polars has no number, because polars reads from memory
        raise ColumnsDamaged(f"it is damaged ({error})") from error
    if frame.height != rows:
        raise ColumnsDamaged(f"only {frame.height} of its {rows} values can be read")
    return frame


def _value_reason(values: pl.Series) -> str:
    return "it holds bytes that are no UTF-8 text" if "Binary" in str(values.dtype) else "it has no text form"


def _clause(error: BaseException) -> str:
    """Return the reason of an error as a clause."""
    if isinstance(error, ColumnsDamaged):
        return str(error)
    lines = str(error).strip().splitlines()
    why = (lines[0] if lines else type(error).__name__)[:_REASON_CHARACTERS].rstrip(".")
    return f"it is damaged, or stored in a way that is not supported ({why})"
