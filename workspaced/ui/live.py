"""Live updates of entries: a stream of server-sent events for each open page.

A commit wakes the streams at once. Each stream also checks periodically, because it can miss commits of other processes. A
check repeats the page's request with the version that the browser has. If nothing changed, a check is one indexed read. Only
one stream checks at a time, so the streams never use more than one database reader. All checks together take at most a quarter
of the time. A longer pause follows a slow check, such as a search through millions of keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from typing import Final

from ingestd.process.http_server.registry import source_of
from workspaced.core.json_body import encode
from workspaced.core.problems import UnavailableProblem
from workspaced.http.responses import HeldParts, Response
from workspaced.settings.model import Limits
from workspaced.ui.entries import entry_range_of, named_exactly, part_values
from workspaced.ui.page_request import PageRefused, PageRequest, parse_response
from workspaced.ui.renderer import Renderer
from workspaced.ui.sessions import Session, Sessions

LOOK_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.25
_SHARE: Final = 10
# After a check, no stream checks for three times the duration of this check, because a commit wakes every stream.
_REST: Final = 3
_LONGEST_REST_SECONDS: Final = 1.0
_KEEPALIVE_SECONDS: Final = 15.0


class LiveUpdates:
    """The open streams of this process.

    ``limits``: the maximum number of streams in total, for a key and for an address. 0 for a key or an address: no limit.
    """

    def __init__(self, rendering: Renderer, sessions: Sessions, *, limits: Limits) -> None:
        self._rendering = rendering
        self._sessions = sessions
        self._limits = limits
        # The key and the address that opened a stream, for the limits; by the event that wakes the stream.
        self._open: dict[asyncio.Event, tuple[str, str]] = {}
        self._closing = asyncio.Event()
        self._turn = asyncio.Semaphore(1)

    def wake(self) -> None:
        """Make every stream check for changes, because a sink has changed."""
        for event in self._open:
            event.set()

    def close(self) -> None:
        """End all streams, and refuse new streams, because the service is stopping."""
        self._closing.set()
        self.wake()

    async def follow(self, request: PageRequest) -> Response:
        """Return the stream of one page.

        Raises:
            PageRefused: too many streams are open, or the service is stopping.
        """
        if self._closing.is_set() or len(self._open) >= self._limits.live_streams:
            raise PageRefused(503, "Busy", "No more pages can be kept up to date. Reload this page by hand.")
        counted = request.session.principal.key_id, source_of(request.address)
        for limit, of, mine in (
            (self._limits.live_streams_per_key, 0, "with your key"),
            (self._limits.live_streams_per_address, 1, "from your address"),
        ):
            if limit and sum(one[of] == counted[of] for one in self._open.values()) >= limit:
                sentence = f"{limit} pages {mine} are being kept up to date already. Reload this page by hand."
                raise PageRefused(429, "Too many open pages", sentence)
        woken = asyncio.Event()
        self._open[woken] = counted
        seen = request.headers.get("Last-Event-ID") or request.query.get("since", "")
        parts = HeldParts(self._events(request, seen, woken), partial(self._release, woken))
        headers = (("Content-Type", "text/event-stream; charset=utf-8"), ("X-Accel-Buffering", "no"))
        return Response(status=200, headers=headers, parts=parts)

    async def _release(self, woken: asyncio.Event) -> None:
        del self._open[woken]

    async def _events(self, request: PageRequest, seen: str, woken: asyncio.Event) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        yield b"retry: 3000\n\n"
        while not self._closing.is_set():
            await self._turn.acquire()
            begun = loop.time()
            try:
                if self._closing.is_set():
                    return
                woken.clear()
                event, seen, ended = await self._news(request, seen)
            finally:
                took = loop.time() - begun
                loop.call_later(min(_REST * took, _LONGEST_REST_SECONDS), self._turn.release)
            if ended:
                yield event
                return
            if event or loop.time() - sent_at > _KEEPALIVE_SECONDS:
                sent_at = loop.time()
                yield event or b": nothing new\n\n"
            await _until(self._closing, max(_PAUSE_SECONDS, _SHARE * took))
            await _until(woken, LOOK_SECONDS)

    async def _news(self, request: PageRequest, seen: str) -> tuple[bytes, str, bool]:
        """Return the event to send (empty: none), the version that the page then has, and whether the stream ends.

        An unavailable database does not end the stream, because the next check may succeed.
        """
        try:
            session = await self._sessions.find(request.session.token)
            if session is None:
                return _ended("You are signed out. Sign in again to see what is new."), seen, True
            return *await self._look(request, session, seen), False
        except PageRefused as refused:
            if refused.status == UnavailableProblem.status:
                return b"", seen, False
            return _ended(refused.sentence), seen, True
        except UnavailableProblem:
            return b"", seen, False

    async def _look(self, request: PageRequest, session: Session, seen: str) -> tuple[bytes, str]:
        """Return the event to send (empty if nothing changed), and the version that the page then has."""
        entry_range = entry_range_of(request)
        api = request.api.for_principal(session.principal)
        response = await api.request(
            "GET",
            *entry_range.path,
            query=entry_range.query,
            headers={"If-None-Match": seen} if seen else None,
            counted=False,
        )
        if response.status == 304:
            return b"", seen
        found = await parse_response(response)
        values = part_values(entry_range, found, await named_exactly(api, entry_range, found))
        rows = self._rendering.part("entry_rows.html", **values)
        pager = self._rendering.part("pager.html", **values)
        version = found.headers["etag"]
        return _event("entries", {"rows": rows, "pager": pager}, version=version), version


def _event(kind: str, data: object, *, version: str = "") -> bytes:
    named = f"id: {version}\n" if version else ""
    return f"event: {kind}\n{named}data: ".encode() + encode(data) + b"\n\n"


def _ended(sentence: str) -> bytes:
    return _event("ended", {"sentence": sentence})


async def _until(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most this number of seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
