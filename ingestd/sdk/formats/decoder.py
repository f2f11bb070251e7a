"""Decodes records from bytes that a connector received, such as the body of a request or the payload of a message."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ingestd.core.errors import SourceBroken, SourceError
from ingestd.sdk.formats.format import Format
from ingestd.sdk.formats.record_chunk import RecordChunk, check_count

_REASON_CHARACTERS = 300


def decode(stream: BinaryIO | bytes, format: Format, *, name: str) -> Iterator[RecordChunk]:  # noqa: A002 - as the setting
    """Yield the records of ``stream``, in a configured format, as one or more chunks. The format bounds the memory.

    A record with an unreadable value in any column is rejected. A column that can't be read as a whole raises `SourceBroken`.

    ``name`` names the bytes in errors, such as the topic of a message. `RecordChunk.to_batch` converts a chunk to a batch.

    Raises:
        SourceBroken: the bytes as a whole don't have the format, or the format raised an unexpected exception.
        SourceUnavailable: the format can't be used here and now. The bytes were not evaluated, so try again later.
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
    """Yield the chunks of ``read``, which calls a format; raise `SourceBroken` instead of an unexpected exception.

    ``name`` names the bytes in errors. The format may be foreign code.

    Raises:
        SourceBroken, SourceUnavailable: the format raised this error. SourceBroken also replaces every unexpected exception.
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
