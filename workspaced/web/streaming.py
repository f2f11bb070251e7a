"""Answers of any length: a short one whole, a long one in pieces out of one consistent view (contract, G19)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from ingestd.wire import names
from workspaced.storage.port import Reader
from workspaced.web.answers import Answer, Headers, streamed
from workspaced.web.operations import Call

_AT_ONCE_RECORDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is to be sent, with what is known before it is: headers, roughly how many records, and whether it is wanted."""

    headers: Headers
    records: int
    parts: Iterator[bytes]
    unchanged: bool = False
    media_type: str = names.JSON


async def sent(call: Call, question: Callable[[Reader], Contents]) -> Answer:
    """The answer to a question, which may be asked twice: each time within one view."""

    def at_once(reader: Reader) -> tuple[Contents, bytes | None]:
        contents = question(reader)
        if contents.unchanged or not call.wants_body:
            return contents, b""
        return contents, b"".join(contents.parts) if contents.records <= _AT_ONCE_RECORDS else None

    contents, body = await call.store.read(at_once)
    if contents.unchanged:
        return Answer(status=304, headers=contents.headers)
    if body is not None:
        return Answer(status=200, headers=(("Content-Type", contents.media_type), *contents.headers), body=body)

    def piecemeal(reader: Reader) -> Iterator[Contents | bytes]:
        again = question(reader)
        yield again
        yield from again.parts

    pieces = call.store.stream(piecemeal)
    first = cast("Contents", await anext(pieces))
    return streamed(_bytes(pieces), headers=first.headers, media_type=first.media_type)


async def _bytes(pieces: AsyncGenerator[Contents | bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(pieces):
        async for piece in pieces:
            yield cast("bytes", piece)
