"""The endpoint of one push source: authenticates clients, limits their requests, and waits until records are durable.

A client proves its identity by a bearer token, or by a signature according to Standard Webhooks 1.0:
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property

import msgspec

from connectors.formats.json import Json
from connectors.push.options import BearerToken, PushAuth, PushOptions
from ingestd.sdk import SourceBroken, SourceContext, SourceUnavailable
from ingestd.sdk.formats import RecordChunk, decode
from ingestd.sdk.streams import Inbox

_COMMIT_SECONDS = 25.0
"""The maximum time for which a request waits for its commit. Then the client gets status 503, and must send it again."""
_RETRY_SECONDS = 5.0
_MESSAGES = 256
_MIN_INBOX_BYTES = 8 << 20
_PREFIXES = ("webhook", "svix")
"""The prefixes of header names. Svix, which began Standard Webhooks, has its own prefix for the same headers."""
_PARTS = ("id", "timestamp", "signature")
_MAX_SIGNATURES = 10
_MAX_ID = 256


class PushedMessage(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Decoded records of one request. ``id``: empty if the client sends no id.

    ``stored``: the future of the response. Its result is empty when the records are durable, or the reason if all records are
    rejected. None: they can't be stored now, and the client must send them again. If the request ends, it is cancelled.
    """

    id: str
    chunks: tuple[RecordChunk, ...]
    size: int
    stored: Future[str | None] = msgspec.field(default_factory=Future)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields of the records."""
        return frozenset(name for chunk in self.chunks for name in chunk.records.columns)


class PushRefused(Exception):
    """The response to a request that is refused. ``retry_after``: in seconds; 0: no Retry-After header."""

    def __init__(
        self, status: int, sentence: str, *, retry_after: float = 0.0, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.retry_after = retry_after
        self.headers = headers


class RequestRate:
    """A token bucket for ``per_second`` requests; a burst may be twice as large. ``now`` is in monotonic seconds."""

    def __init__(self, per_second: float, *, now: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, 2 * per_second)
        self._tokens = self._most
        self._at = now

    def wait(self, now: float) -> float:
        """Return the seconds until a token is available; 0 if one is available now."""
        self._tokens = min(self._most, self._tokens + max(0.0, now - self._at) * self._per_second)
        self._at = now
        return max(0.0, (1 - self._tokens) / self._per_second)

    def take(self, now: float) -> float:
        """Take a token and return 0. If there is no token, return the seconds until a token is available."""
        wait = self.wait(now)
        if not wait:
            self._tokens -= 1
        return wait


class PushEndpoint:
    """Receives the requests of one path in the listener's event loop, and passes their messages to the reading.

    ``context``: the context of the source. ``on_wake`` is called for each accepted request with ``mode: wake``.
    """

    def __init__(self, options: PushOptions, context: SourceContext, *, on_wake: Callable[[], None]) -> None:
        self._options = options
        self._context = context
        self._on_wake = on_wake
        self.max_body = options.max_body
        self.inbox: Inbox[PushedMessage] = Inbox(
            max_items=_MESSAGES, max_bytes=max(_MIN_INBOX_BYTES, 4 * options.max_body)
        )
        self._rate = RequestRate(options.requests_per_second, now=time.monotonic())
        self._accepts = threading.Event()
        self.refused = 0
        """The number of requests that got status 429 or 503."""

    def accept(self) -> None:
        """Accept messages from now on, because a reading can store them."""
        self._accepts.set()

    def pause(self) -> None:
        """Respond with 503 until `accept`, because messages that were read could not be stored."""
        self._accepts.clear()
        for message in self.inbox.take(_MESSAGES):
            if message.stored.set_running_or_notify_cancel():
                message.stored.set_result(None)

    def check(self, headers: Mapping[str, str]) -> None:
        """Check a request before its body is read. Raise `PushRefused` if it is not accepted."""
        _check_headers(self._options.auth, headers, self._context.now())
        _message_id(self._options.auth, headers)
        # Here the rate is only checked. A request counts when it is complete and authentic. So no unauthenticated client can
        # use up the rate.
        if wait := self._rate.wait(time.monotonic()):
            raise self._too_many(wait)
        if self._context.paused.is_set():
            raise self._unavailable("The pipeline is paused. Send the request again later.")
        if not self._accepts.is_set() or self.inbox.is_closed:
            raise self._unavailable()

    async def store(self, headers: Mapping[str, str], body: bytes) -> str:
        """Store the records of a request that `check` has accepted, and return when they are durable.

        Return the reason if all records are rejected; else the empty text. Repeated records are not stored again.

        Raises:
            PushRefused: no record was stored.
        """
        _check_body(self._options.auth, headers, body)
        if wait := self._rate.take(time.monotonic()):
            raise self._too_many(wait)
        if self._options.mode == "wake":
            self._on_wake()
            return ""
        try:
            chunks = await asyncio.to_thread(self._decode, body)
        except SourceBroken as error:
            raise PushRefused(422, str(error)) from None
        except SourceUnavailable as error:
            raise self._unavailable(str(error)) from None
        message = PushedMessage(id=_message_id(self._options.auth, headers), chunks=chunks, size=len(body))
        if not self.inbox.offer(message, message.size + 1):
            raise self._unavailable()
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                stored = await asyncio.wrap_future(message.stored)
        except TimeoutError:
            stored = None
        if stored is None:
            raise self._unavailable()
        return stored

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


def _check_headers(auth: PushAuth, headers: Mapping[str, str], now: float) -> None:
    """Check the credentials in the headers, before the body is read. ``now``: seconds since the epoch."""
    if isinstance(auth, BearerToken):
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # Digests have equal length, so the time of the comparison reveals nothing about the token.
        known = hashlib.sha256(auth.token.get_secret_value().encode()).digest()
        is_same = hmac.compare_digest(hashlib.sha256(token.strip().encode("latin-1")).digest(), known)
        if scheme.lower() != "bearer" or not is_same:
            raise _denied(auth, "The request needs the header Authorization with the right bearer token.")
        return
    prefix = _prefix(headers)
    missing = [name for part in _PARTS if not headers.get(name := f"{prefix}-{part}")]
    if missing:
        raise _denied(auth, f"The request needs the header {missing[0]}, as Standard Webhooks says.")
    timestamp = headers[f"{prefix}-timestamp"]
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 15):
        raise _denied(auth, f"The header {prefix}-timestamp must be a number of seconds since 1970.")
    if abs(now - int(timestamp)) > auth.tolerance_seconds:
        raise _denied(
            auth, f"The time of {prefix}-timestamp is too far from the present; check both clocks, and sign again."
        )


def _check_body(auth: PushAuth, headers: Mapping[str, str], body: bytes) -> None:
    """Check that a configured secret made a signature of the body. Requires `_check_headers`."""
    if isinstance(auth, BearerToken):
        return
    prefix = _prefix(headers)
    signed = f"{headers[f'{prefix}-id']}.{headers[f'{prefix}-timestamp']}.".encode("latin-1") + body
    given = [
        one.removeprefix("v1,").encode("latin-1")
        for one in headers[f"{prefix}-signature"].split(" ")[:_MAX_SIGNATURES]
        if one.startswith("v1,")
    ]
    is_valid = False
    for key in auth.keys:
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        for one in given:  # all secrets are compared, so that the time does not reveal which secret is correct
            is_valid |= hmac.compare_digest(expected, one)
    if not is_valid:
        raise _denied(auth, f"No signature of {prefix}-signature fits the body and the secret.")


def _message_id(auth: PushAuth, headers: Mapping[str, str]) -> str:
    """Return the id of the message; empty if the client sends no id. A repeated message has the same id."""
    found = headers.get(f"{_prefix(headers)}-id") or headers.get("idempotency-key") or ""
    if len(found) > _MAX_ID:
        raise _denied(auth, f"The id of the message has more than {_MAX_ID} characters.")
    return found


def _denied(auth: PushAuth, sentence: str) -> PushRefused:
    challenge = (("WWW-Authenticate", "Bearer"),) if auth.type == "bearer" else ()
    return PushRefused(401, sentence, headers=challenge)


def _prefix(headers: Mapping[str, str]) -> str:
    """Return the prefix of the header names. All headers of a request have the same prefix."""
    return next((one for one in _PREFIXES if f"{one}-signature" in headers or f"{one}-id" in headers), _PREFIXES[0])
