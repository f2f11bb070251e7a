"""Responses of any length: short responses whole, long responses in parts from one consistent view (contract G34)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from ingestd.wire import names
from workspaced.http.operations import Call
from workspaced.http.responses import Headers, Response, streamed
from workspaced.http.spool import MEMORY_BYTES
from workspaced.storage.port import ReadTransaction

_WHOLE_RECORDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The content of a response: headers, approximate number of records, and parts. ``unchanged``: the response is a 304."""

    headers: Headers
    records: int
    parts: Iterator[bytes]
    unchanged: bool = False
    media_type: str = names.JSON


async def stream_response(call: Call, query: Callable[[ReadTransaction], Contents]) -> Response:
    """Return the response to a query, which may run twice, each time in one consistent view."""

    def read_whole(reader: ReadTransaction) -> tuple[Contents, bytes | None]:
        contents = query(reader)
        if contents.unchanged or not call.wants_body:
            return contents, b""
        return contents, _joined(contents.parts) if contents.records <= _WHOLE_RECORDS else None

    contents, body = await call.store.read(read_whole)
    if contents.unchanged:
        return Response(status=304, headers=contents.headers)
    if body is not None:
        return Response(status=200, headers=(("Content-Type", contents.media_type), *contents.headers), body=body)

    def read_in_parts(reader: ReadTransaction) -> Iterator[Contents | bytes]:
        again = query(reader)
        yield again
        yield from again.parts

    found, parts = await call.long_responses.begin(call.caller, call.store.stream(read_in_parts))
    first = cast("Contents", found)
    return streamed(parts, headers=first.headers, media_type=first.media_type)


def _joined(parts: Iterator[bytes]) -> bytes | None:
    """Join all parts; return None if they are too long to be held in memory until the client has read them."""
    joined: list[bytes] = []
    length = 0
    for part in parts:
        length += len(part)
        if length > MEMORY_BYTES:
            return None
        joined.append(part)
    return b"".join(joined)
