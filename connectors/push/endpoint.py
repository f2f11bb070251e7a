"""The path of one source: who may send, how much, and when a request is acknowledged."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

import msgspec

from connectors.formats.json import Json
from connectors.push.authentication import Denied, check_body, check_headers, message_id
from connectors.push.options import PushOptions
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.sdk.formats import RecordChunk, decode
from ingestd.sdk.streams import Inbox

_COMMIT_SECONDS = 25.0
"""How long a request waits for its commit; then the client gets 503 and sends it again."""
_RETRY_SECONDS = 5.0
_MESSAGES = 256
_MIN_INBOX_BYTES = 8 << 20


class PushedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Decoded records of one request. ``id``: empty if the client sends none.

    ``stored`` becomes True when the records are durable, and False if they can't be stored now: the client sends them again. It
    is cancelled if the client does not wait any more.
    """

    id: str
    chunks: tuple[RecordChunk, ...]
    size: int
    stored: Future[bool] = msgspec.field(default_factory=Future)


class PushRefused(Exception):
    """The response to a request that was not accepted. ``retry_after``: seconds, 0 for no such header."""

    def __init__(
        self, status: int, sentence: str, *, retry_after: float = 0.0, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after
        self.headers = headers


class RequestRate:
    """A bucket of tokens: ``per_second`` requests, and twice as many at once. ``now`` is monotonic seconds."""

    def __init__(self, per_second: float, *, now: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, 2 * per_second)
        self._tokens = self._most
        self._at = now

    def wait(self, now: float) -> float:
        """Return the seconds until there is a token, 0 if there is one."""
        self._tokens = min(self._most, self._tokens + max(0.0, now - self._at) * self._per_second)
        self._at = now
        return max(0.0, (1 - self._tokens) / self._per_second)

    def take(self, now: float) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        wait = self.wait(now)
        if not wait:
            self._tokens -= 1
        return wait


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
            if message.stored.set_running_or_notify_cancel():
                message.stored.set_result(False)

    def check(self, headers: Mapping[str, str]) -> None:
        """Check a request before its body is read.

        Raises:
            PushRefused: it is not accepted.
        """
        try:
            check_headers(self._options.auth, headers, self._now())
            message_id(headers)
        except Denied as error:
            raise self._denied(error) from None
        # Only looked at here: a request counts when it is whole and authentic, so that no other client can use the rate up.
        if wait := self._rate.wait(time.monotonic()):
            raise self._too_many(wait)
        if not self._accepts.is_set() or self.inbox.is_closed:
            raise self._unavailable()

    async def store(self, headers: Mapping[str, str], body: bytes) -> None:
        """Store the records of a request that `check` has passed; return when they are durable, or were stored before.

        Raises:
            PushRefused: nothing was stored.
        """
        try:
            check_body(self._options.auth, headers, body)
        except Denied as error:
            raise self._denied(error) from None
        if wait := self._rate.take(time.monotonic()):
            raise self._too_many(wait)
        if self._options.mode == "wake":
            self._on_wake()
            return
        try:
            chunks = await asyncio.to_thread(self._decode, body)
        except SourceBroken as error:
            raise PushRefused(422, str(error)) from None
        except SourceUnavailable as error:
            raise self._unavailable(str(error)) from None
        message = PushedMessage(id=message_id(headers), chunks=chunks, size=len(body))
        if not self.inbox.offer(message, message.size + 1):
            raise self._unavailable()
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                is_stored = await asyncio.wrap_future(message.stored)
        except TimeoutError:
            is_stored = False
        if not is_stored:
            raise self._unavailable()

    def _decode(self, body: bytes) -> tuple[RecordChunk, ...]:
        return tuple(decode(body, self._options.format or Json(), name="The body"))

    def _too_many(self, wait: float) -> PushRefused:
        self.refused += 1
        return PushRefused(429, "Too many requests; send fewer.", retry_after=wait)

    def _unavailable(
        self, sentence: str = "The records can't be stored now. Send the request again later."
    ) -> PushRefused:
        self.refused += 1
        return PushRefused(503, sentence, retry_after=_RETRY_SECONDS)

    def _denied(self, error: Denied) -> PushRefused:
        challenge = (("WWW-Authenticate", "Bearer"),) if self._options.auth.type == "bearer" else ()
        return PushRefused(401, str(error), headers=challenge)
