"""The record scanner: finds the end of a CSV record as Python's csv module does, in bounded memory."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache

from connectors.formats.csv.dialect import COMMA, Dialect

_LF, _CR = b"\n\r"
_NONE = -1


class State(Enum):
    """The state of the scanner, which decides what the next byte means."""

    FIELD_START = auto()
    UNQUOTED = auto()
    QUOTED = auto()
    QUOTE_SEEN = auto()  # inside quotes: the closing quote, or the first half of an escaped quote
    CR_SEEN = auto()  # the record ended; a line feed that follows belongs to the record


class RecordScanner:
    """Finds the end of one record. It keeps its state between blocks, but not the bytes."""

    def __init__(self, dialect: Dialect = COMMA) -> None:
        self.state = State.FIELD_START
        self._delimiter = ord(dialect.delimiter)
        self._quote = ord(dialect.quote) if dialect.quote else _NONE
        self._field_end = _field_end(dialect.delimiter)

    def feed(self, data: bytes) -> int | None:
        """Return the number of bytes of ``data`` in the record; None if the record continues after ``data``."""
        at = 0
        while at < len(data):
            match self.state:
                case State.QUOTED:
                    quote = data.find(self._quote, at)
                    if quote < 0:
                        return None
                    self.state, at = State.QUOTE_SEEN, quote + 1
                case State.UNQUOTED:
                    found = self._field_end.search(data, at)
                    if found is None:
                        return None
                    at = found.start() + 1
                    if self._step_between(data[found.start()]):
                        return at
                case State.CR_SEEN:
                    return at + 1 if data[at] == _LF else at
                case State.FIELD_START | State.QUOTE_SEEN:
                    at += 1
                    if self._step_between(data[at - 1]):
                        return at
        return None

    def _step_between(self, byte: int) -> bool:
        """Step over a byte that is not inside a field, and return True if the record ends with it."""
        if byte == _LF:
            return True
        if byte == _CR:
            self.state = State.CR_SEEN
        elif byte == self._delimiter:
            self.state = State.FIELD_START
        elif (
            byte == self._quote
        ):  # only at the start of a field or after a quote: an unquoted field ends only at a delimiter or line end
            self.state = State.QUOTED
        else:
            self.state = State.UNQUOTED
        return False


@lru_cache(maxsize=64)
def _field_end(delimiter: str) -> re.Pattern[bytes]:
    return re.compile(rb"[%s\r\n]" % re.escape(delimiter.encode()))
