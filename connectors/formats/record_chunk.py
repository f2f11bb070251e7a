"""What every format yields: a stretch of a file's records, and where the next one starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from ingestd.sdk import Reject

BLOCK_BYTES = 8 * 2**20
"""How much is read at a time: large enough for columns to pay, small enough to be forgotten at once."""

RECORD_BYTES = 16 * 2**20
"""A record larger than this is parked: one missing quote must not pull a whole file into memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLocation:
    """Between two records: the byte offset at which the next one starts, and the row number of the one before.

    The offset is one in the file where that is UTF-8, else in its text as UTF-8.
    """

    offset: int = 0
    row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChunk:
    """Consecutive records of a file.

    ``records``: columns of ``pl.String``. ``positions``: ``pl.Int64``, one a record, row numbers as the format counts.
    ``rejects``: the records of this stretch that could not be read. ``end``: where reading can be taken up again.
    ``header``: the columns are the file's own, from its header, not only those that occur here. ``facts``: what was found
    out about the file and is worth a record, such as ``file.encoding``.
    """

    records: pl.DataFrame
    positions: pl.Series
    rejects: tuple[Reject, ...]
    end: RecordLocation
    header: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)


_STRAY = re.compile("\udced([\udcb0-\udcb3])([\udc80-\udcbf])")


def escape_stray_bytes(text: str) -> str:
    r"""``text`` fit to be stored and sent: a stray byte (lone surrogates here) is written as ``\xff``."""
    if text.isascii():
        return text
    return _STRAY.sub(_one_byte, text).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _one_byte(found: re.Match[str]) -> str:
    """A stray byte of another encoding than UTF-8 was marked by three (see `connectors.formats.text.text_file`)."""
    return f"\\x{(ord(found[1]) & 3) << 6 | ord(found[2]) & 0x3F:02x}"
