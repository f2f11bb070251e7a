"""The records that a format reads, in forms that tests compare."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest

from connectors.formats import resolve_format
from ingestd.sdk import Position, SourceBroken
from ingestd.sdk.formats import Format, IsolatedFormat, RecordChunk, check_count


def read(file_format: Format, data: bytes, name: str = "a") -> list[RecordChunk]:
    """Return the chunks of a file. Fail if the file states another number of records."""
    return list(check_count(file_format.read(io.BytesIO(data), name), name))


def read_named(name: str, data: bytes, file_format: Format | None = None, *, member: str = "*") -> list[RecordChunk]:
    """Return the chunks of a file, in ``file_format`` or, without it, in the format that the name selects."""
    return read(resolve_format(name, file_format, member=member), data, name)


def parse(file_format: IsolatedFormat, data: bytes, name: str = "a") -> list[RecordChunk]:
    """Return the chunks of a file as `read` does, but without a parser process."""
    return list(check_count(file_format.parse(io.BytesIO(data), name), name))


def sentence(file_format: Format, data: bytes, name: str = "a") -> str:
    """Return the sentence that says why a file is refused; empty if the file can be read."""
    try:
        read(file_format, data, name)
    except SourceBroken as error:
        return str(error)
    return ""


def parser_sentence(file_format: IsolatedFormat, data: bytes, name: str = "a") -> str:
    """Return the sentence that says why a file is refused, without a parser process."""
    with pytest.raises(SourceBroken) as refused:
        parse(file_format, data, name)
    return str(refused.value)


def rows(chunks: Iterable[RecordChunk]) -> list[tuple[str | None, ...]]:
    """Return the values of each record."""
    return [row for chunk in chunks for row in chunk.records.rows()]


def positions(chunks: Iterable[RecordChunk]) -> list[Position]:
    """Return the position of each record."""
    return [position for chunk in chunks for position in chunk.positions]


def located(chunks: Iterable[RecordChunk]) -> list[tuple[Position, dict[str, str]]]:
    """Return the position and the fields with a value of each record."""
    return [
        (position, {name: value for name, value in row.items() if value is not None})
        for chunk in chunks
        for position, row in zip(chunk.positions, chunk.records.iter_rows(named=True), strict=True)
    ]


def rejects(chunks: Iterable[RecordChunk]) -> dict[Position, str]:
    """Return the reason of each rejected record by position."""
    return {reject.position: reject.reason for chunk in chunks for reject in chunk.rejects}
