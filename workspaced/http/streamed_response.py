"""Answers of any length: a short one whole, a long one in pieces out of one consistent view (contract G34)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from ingestd.wire import names
from workspaced.http.operations import Call
from workspaced.http.responses import Headers, Response, streamed
from workspaced.http.spool import MEMORY_BYTES
from workspaced.storage.port import ReadTransaction

_AT_ONCE_RECORDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is to be sent, with what is known before it is: headers, roughly how many records, and whether it is wanted."""

    headers: Headers
    records: int
    parts: Iterator[bytes]
    unchanged: bool = False
    media_type: str = names.JSON


async def sent(call: Call, question: Callable[[ReadTransaction], Contents]) -> Response:
    """The answer to a question, which may be asked twice: each time within one view."""

    def at_once(reader: ReadTransaction) -> tuple[Contents, bytes | None]:
        contents = question(reader)
        if contents.unchanged or not call.wants_body:
            return contents, b""
        return contents, _joined(contents.parts) if contents.records <= _AT_ONCE_RECORDS else None

    contents, body = await call.store.read(at_once)
    if contents.unchanged:
        return Response(status=304, headers=contents.headers)
    if body is not None:
        return Response(status=200, headers=(("Content-Type", contents.media_type), *contents.headers), body=body)

    def piecemeal(reader: ReadTransaction) -> Iterator[Contents | bytes]:
        again = question(reader)
        yield again
        yield from again.parts

    found, parts = await call.long_responses.begin(call.caller, call.store.stream(piecemeal))
    first = cast("Contents", found)
    return streamed(parts, headers=first.headers, media_type=first.media_type)


def _joined(parts: Iterator[bytes]) -> bytes | None:
    """All parts as one; None if they are too long for an answer that waits in memory until its client has read it."""
    joined: list[bytes] = []
    length = 0
    for part in parts:
        length += len(part)
        if length > MEMORY_BYTES:
            return None
        joined.append(part)
    return b"".join(joined)
