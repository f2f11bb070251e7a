"""The time that the end of a response waits for the rest of an unread request body."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from starlette.types import Message, Receive, Scope, Send

from workspaced.http.body_drain import DrainBodyMiddleware

REFUSAL: list[Message] = [
    {"type": "http.response.start", "status": 413, "headers": ()},
    {"type": "http.response.body", "body": b"no"},
]
END: Message = {"type": "http.response.body", "body": b""}


async def _refusing(_scope: Scope, _receive: Receive, send: Send) -> None:
    for message in REFUSAL:
        await send(dict(message))


async def _sent(
    messages: Iterator[Message], *headers: tuple[bytes, bytes], most_bytes: int = 100
) -> tuple[int, list[Message]]:
    """Return the number of request messages that were read, and the whole response."""
    taken = 0
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal taken
        for message in messages:
            taken += 1
            return message
        await asyncio.Event().wait()  # silence
        raise AssertionError("it was given up")

    async def send(message: Message) -> None:
        sent.append(message)

    app = DrainBodyMiddleware(_refusing, longest_seconds=0.05, most_bytes=most_bytes)
    await app({"type": "http", "headers": list(headers)}, receive, send)
    return taken, sent


def _body(*parts: bytes) -> Iterator[Message]:
    for number, part in enumerate(parts, 1):
        yield {"type": "http.request", "body": part, "more_body": number < len(parts)}


def _endless() -> Iterator[Message]:
    while True:
        yield {"type": "http.request", "body": b"x" * 10, "more_body": True}


CHUNKED = (b"transfer-encoding", b"chunked")


async def test_data_in_transit_is_discarded_before_the_response_ends() -> None:
    # contract G33
    taken, sent = await _sent(_body(b"a", b"b", b"c"), CHUNKED)
    assert (taken, sent[-1]) == (3, END)
    assert sent[1] == {"type": "http.response.body", "body": b"no", "more_body": True}


@pytest.mark.parametrize("messages", [_endless(), iter(()), iter([{"type": "http.disconnect"}])])
async def test_a_body_that_never_ends_or_stops_arriving_is_abandoned(messages: Iterator[Message]) -> None:
    taken, sent = await _sent(messages, (b"content-length", b"1000"))
    assert taken <= 10
    assert sent[0]["headers"] == [(b"connection", b"close")]
    assert sent[-1] == END


@pytest.mark.parametrize(
    "headers",
    [(), ((b"content-length", b"0"),), ((b"content-length", b"5"), (b"expect", b"100-continue"))],
    ids=["no body", "an empty one", "one that was asked about first"],
)
async def test_without_data_in_transit_the_response_ends_immediately(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    assert await _sent(iter(()), *headers) == (0, REFUSAL)
