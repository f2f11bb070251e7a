"""Parts of HTTP servers in the daemon: requests as h11 reads them, without what it tolerates, and their connections.

A proxy in front of a server must see the same requests as the server. So what two parsers may read in two ways is malformed:
a line end without CR, a folded line, two lengths, two values of a header, another version of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

import h11

from ingestd.wire.request_headers import HOST, RepeatedHeader, single_values

_CHUNK_BYTES: Final = 64 << 10
_DRAIN_BYTES: Final = 64 << 10
_DRAIN_SECONDS: Final = 1.0
_FLUSH_SECONDS: Final = 30.0
_END_OF_CHUNKS: Final = b"\r\n\r\n"


class MalformedRequest(Exception):
    """The request can't be used. ``status`` and ``sentence`` are for the client."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class RequestParser:
    """The requests of one connection. ``http`` sends the responses."""

    def __init__(self, *, head_bytes: int) -> None:
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=head_bytes)
        self._head: bytearray | None = bytearray()
        self._last = b""  # the last received bytes, with the end of those before
        self._is_chunked = False
        self._is_broken = False

    def receive(self, data: bytes) -> None:
        """Take bytes of the client; empty at the end of its stream."""
        if self._head is not None:
            self._head += data
        self._last = self._last[-len(_END_OF_CHUNKS) :] + data
        self.http.receive_data(data)

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return h11's next event.

        Raises:
            MalformedRequest: the request is not valid HTTP/1.1 or HTTP/1.0; the connection must be closed after the response.
        """
        try:
            event = self.http.next_event()
            if isinstance(event, h11.Request):
                self._check_head(event)
            elif isinstance(event, h11.EndOfMessage):
                self._check_end(event)
        except h11.RemoteProtocolError as error:
            self._is_broken = True
            status = error.error_status_hint
            sentence = "The headers are too large." if status == 431 else "The request is not valid HTTP."
            raise MalformedRequest(status, sentence) from None
        except (RepeatedHeader, MalformedRequest) as error:
            self._is_broken = True
            raise MalformedRequest(400, str(error)) from None
        return event

    def start_next(self) -> bool:
        """Prepare for the next request of the connection; return False if there can't be one."""
        if self._is_broken or self.http.our_state is not h11.DONE or self.http.their_state is not h11.DONE:
            return False
        self.http.start_next_cycle()
        self._head = bytearray(self.http.trailing_data[0])
        self._last = bytes(self._head)
        return True

    def _check_head(self, request: h11.Request) -> None:
        head, self._head = self._head or bytearray(), None
        rest = len(self.http.trailing_data[0])
        head = head[: len(head) - rest]
        if not head.count(b"\n") == head.count(b"\r") == head.count(b"\r\n"):
            raise MalformedRequest(400, "The lines of the request's head must end with CR and LF.")
        if b"\r\n " in head or b"\r\n\t" in head:
            raise MalformedRequest(400, "A line of the request's head begins with a blank.")
        if request.http_version not in {b"1.0", b"1.1"}:
            raise MalformedRequest(400, "The request is not HTTP/1.1.")
        # Not the headers of h11, which makes one length of several equal ones.
        lines = (line.partition(b":") for line in bytes(head).split(b"\r\n")[1:-2])
        values = single_values((name.lower(), value.strip(b" \t")) for name, _, value in lines)
        if not values.get(b"content-length", b"0").isdigit():
            raise MalformedRequest(400, "The header Content-Length must be a number.")
        self._is_chunked = b"transfer-encoding" in values
        if self._is_chunked and (b"content-length" in values or request.http_version == b"1.0"):
            raise MalformedRequest(400, "Transfer-Encoding is not accepted with Content-Length or in HTTP/1.0.")
        if not HOST.fullmatch(values.get(b"host", b"")):
            raise MalformedRequest(400, "The header Host must be a host name or address, and may have a port.")

    def _check_end(self, end: h11.EndOfMessage) -> None:
        read = self._last[: len(self._last) - len(self.http.trailing_data[0])]
        if self._is_chunked and (end.headers or not read.endswith(_END_OF_CHUNKS)):
            raise MalformedRequest(400, "The body must end with an empty chunk, without further headers.")


def headers_of(request: h11.Request) -> Mapping[str, str]:
    """Return the headers of a request of `RequestParser`, by their names in lower case."""
    return {name.decode("ascii"): value.decode("latin-1") for name, value in single_values(request.headers).items()}


class OpenConnections:
    """The connections of a server, at most ``most``. When there are more, those that lose least are closed first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._writers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._draining: dict[asyncio.Task[None], None] = {}
        self._waiting: dict[asyncio.Task[None], None] = {}

    def make_room(self) -> bool:
        """Return whether another connection may be added, after one was closed if necessary.

        The oldest one is closed that has got its response, else that has not sent its request, else with a client that does
        not read.
        """
        if len(self._writers) < self._most:
            return True
        unread = (task for task, writer in self._writers.items() if writer.transport.get_write_buffer_size())
        victim = next(iter(self._draining), None) or next(iter(self._waiting), None) or next(unread, None)
        if victim is None:
            return False
        self.remove(victim)
        victim.cancel()
        return True

    def add(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        """Add a connection, which waits for its first request."""
        self._writers[task] = writer
        self._waiting[task] = None

    def remove(self, task: asyncio.Task[None]) -> None:
        """Forget a connection."""
        for known in (self._writers, self._draining, self._waiting):
            known.pop(task, None)

    def note_waiting(self) -> None:
        """Note that the connection of the current task waits for a request."""
        self._note(self._waiting)

    def note_request(self) -> None:
        """Note that the connection of the current task has sent a whole request."""
        self._waiting.pop(_current(), None)

    async def drain(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """End the connection of the current task, so that the client can read the response before it is closed.

        Unread bytes of a request would reset the connection. So 64 KiB of them are dropped, for at most a second.
        """
        if writer.is_closing():
            return
        self.note_request()
        self._note(self._draining)
        if writer.can_write_eof():
            writer.write_eof()
        dropped = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while data := await reader.read(_CHUNK_BYTES):
                    dropped += len(data)
                    if (
                        dropped >= _DRAIN_BYTES
                    ):  # a client that still sends needs the rest of the time to read the response
                        await asyncio.Event().wait()
        writer.close()
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await writer.wait_closed()

    def _note(self, known: dict[asyncio.Task[None], None]) -> None:
        if _current() in self._writers:
            known[_current()] = None

    async def close_all(self) -> None:
        """Close every connection."""
        tasks = list(self._writers)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _current() -> asyncio.Task[None]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("there is no current task")
    return task
