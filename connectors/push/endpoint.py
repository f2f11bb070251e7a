"""The path of one source: who may send, how much, and when a request is acknowledged."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping

from connectors.formats.json import Json
from connectors.push.authentication import Denied, check_body, check_headers, message_id
from connectors.push.listener import PushRefused, PushResponse
from connectors.push.message import NotStored, PushedMessage
from connectors.push.options import PushOptions
from connectors.push.rate import RequestRate
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.sdk.formats import RecordChunk, decode
from ingestd.sdk.streams import Inbox

_COMMIT_SECONDS = 25.0
"""How long a request waits for its commit; then the client gets 503 and sends it again."""
_RETRY_SECONDS = 5.0
_MESSAGES = 256
_MIN_INBOX_BYTES = 8 << 20
_UNAVAILABLE = "The records can't be stored now. Send the request again later."


class PushEndpoint:
    """Receives the requests of one path in the listener's loop, and gives their messages to the reading.

    ``now`` returns seconds since the epoch. ``on_wake`` is called for each accepted request of ``mode: wake``.
    """

    def __init__(self, options: PushOptions, *, now: Callable[[], float], on_wake: Callable[[], None]) -> None:
        self._options = options
        self._now = now
        self._on_wake = on_wake
        self.max_body = options.max_body
        self.inbox: Inbox[PushedMessage] = Inbox(
            max_items=_MESSAGES, max_bytes=max(_MIN_INBOX_BYTES, 4 * options.max_body)
        )
        self._rate = RequestRate(options.requests_per_second, now=time.monotonic())
        self._accepts = threading.Event()
        self.refused = 0
        """Requests that got status 429 or 503."""

    def accept(self) -> None:
        """Accept messages: a reading can store them."""
        self._accepts.set()

    def pause(self) -> None:
        """Respond with 503 until `accept`, because what was read could not be stored."""
        self._accepts.clear()
        for message in self.inbox.take(_MESSAGES):
            fail(message)

    def check(self, headers: Mapping[str, str]) -> None:
        """See `Endpoint.check`."""
        try:
            check_headers(self._options.auth, headers, self._now())
            message_id(headers)
        except Denied as error:
            raise PushRefused(self._denied(error)) from None
        # Only looked at here: a request counts when it is whole and authentic, so that no other client can use the rate up.
        if wait := self._rate.wait(time.monotonic()):
            raise PushRefused(self._too_many(wait))
        if not self._accepts.is_set() or self.inbox.is_closed:
            raise PushRefused(self._unavailable())

    async def respond(self, headers: Mapping[str, str], body: bytes) -> PushResponse:
        """See `Endpoint.respond`. 204 if the records are durable, or the message was stored before."""
        try:
            check_body(self._options.auth, headers, body)
        except Denied as error:
            return self._denied(error)
        if wait := self._rate.take(time.monotonic()):
            return self._too_many(wait)
        if self._options.mode == "wake":
            self._on_wake()
            return PushResponse(status=204)
        try:
            chunks = await asyncio.to_thread(self._decode, body)
        except SourceBroken as error:
            return PushResponse(status=422, sentence=str(error))
        except SourceUnavailable as error:
            return self._unavailable(str(error))
        return await self._store(PushedMessage(id=message_id(headers), chunks=chunks, size=len(body)))

    async def _store(self, message: PushedMessage) -> PushResponse:
        if not self.inbox.offer(message, message.size + 1):
            return self._unavailable()
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                await asyncio.wrap_future(message.stored)
        except (NotStored, TimeoutError):
            return self._unavailable()
        return PushResponse(status=204)

    def _too_many(self, wait: float) -> PushResponse:
        self.refused += 1
        return PushResponse(status=429, sentence="Too many requests; send fewer.", retry_after=wait)

    def _unavailable(self, sentence: str = _UNAVAILABLE) -> PushResponse:
        self.refused += 1
        return PushResponse(status=503, sentence=sentence, retry_after=_RETRY_SECONDS)

    def _denied(self, error: Denied) -> PushResponse:
        challenge = (("WWW-Authenticate", "Bearer"),) if self._options.auth.type == "bearer" else ()
        return PushResponse(status=401, sentence=str(error), headers=challenge)

    def _decode(self, body: bytes) -> tuple[RecordChunk, ...]:
        """Return the records of a body, all of them or none.

        Raises:
            SourceBroken: the body is not of the format.
            SourceUnavailable: the format can't be used now.
        """
        return tuple(decode(body, self._options.format or Json(), name="The body"))


def fail(message: PushedMessage) -> None:
    """Have a message be sent again, unless its client waits no more."""
    if message.stored.set_running_or_notify_cancel():
        message.stored.set_exception(NotStored(_UNAVAILABLE))
