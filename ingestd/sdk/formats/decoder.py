"""Decoding: the records of bytes that a connector received, such as the body of a request or the payload of a message."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ingestd.core.errors import SourceBroken, SourceError
from ingestd.sdk.formats.format import Format
from ingestd.sdk.formats.record_chunk import RecordChunk, check_count

_REASON_CHARACTERS = 300


def decode(stream: BinaryIO | bytes, format: Format, *, name: str) -> Iterator[RecordChunk]:  # noqa: A002 - as the setting
    """Yield the records of ``stream`` in any configured format; at least one chunk, in the memory bounds of the format.

    Every column counts as used: a record with an unreadable value is among the rejects, and an unreadable column raises.

    ``name`` names the bytes in errors, such as the topic of a message. `RecordChunk.to_batch` makes a batch of a chunk.

    Raises:
        SourceBroken: the bytes as a whole are not of the format; an unforeseen exception of the format counts as this.
        SourceUnavailable: the format can't be used here and now; the bytes were not evaluated, so try them again later.
    """
    if isinstance(stream, bytes):
        stream = io.BytesIO(stream)
    try:
        chunks = broken_instead_of_failed(lambda: format.read(stream, name), format, name)
        for chunk in check_count(chunks, name):
            yield chunk.without_unreadable()
    except OSError as error:
        raise _parser_failed(error, format, name) from error


def broken_instead_of_failed(
    read: Callable[[], Iterator[RecordChunk]],
    format: Format,  # noqa: A002 - as the setting
    name: str,
) -> Iterator[RecordChunk]:
    """Yield the chunks that ``read`` returns; it calls a format for the bytes called ``name``.

    Raises:
        SourceBroken: raised by the format; or the format raised an exception that its contract does not name, because it may be
        foreign code.
        SourceUnavailable: as the format.
        OSError: the bytes can't be read.
    """
    try:
        yield from read()
    except (SourceError, OSError):
        raise
    except Exception as error:
        raise _parser_failed(error, format, name) from error


def _parser_failed(error: Exception, format: Format, name: str) -> SourceBroken:  # noqa: A002
    kind = type(format).model_fields["type"].default
    why = f"{type(error).__name__}: {' '.join(str(error).split())}"[:_REASON_CHARACTERS]
    return SourceBroken(f"{name} can't be read as {kind}: its parser failed, {why}.")
