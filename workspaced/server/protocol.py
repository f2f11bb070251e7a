"""uvicorn's HTTP protocol with limits: deadlines for clients, sizes of request heads, and problems as JSON.

A client has a deadline for the complete head of a request, and minimum rates for its body and for reading the response. No
deadline runs while the service is the one to act.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ingestd.wire import names
from ingestd.wire.request_headers import HOST
from workspaced.core.problems import HeadTooLarge, Invalid, Problem, RequestTimeout, TargetTooLong, UnavailableProblem
from workspaced.http.body_drain import BODY_RECEIVED, DRAIN_BEGUN
from workspaced.http.problem_body import problem_response
from workspaced.http.tracing import new_request_id
from workspaced.server.connections import Connections, Reason, source_of
from workspaced.server.response_buffer import GatheringTransport
from workspaced.server.response_cycle import ResponseCycle

_DRAIN_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 65_536
_PIPELINED_REQUESTS: Final = 32
_RETRY_SECONDS: Final = 5
_CACHED_TARGET_BYTES: Final = 512


class _RequestRefused(Exception):
    """Stops the parser at a request that is refused."""


class _Window:
    """Measures whether a count of bytes grows by a minimum in each window of time."""

    __slots__ = ("_count", "_since")

    def __init__(self) -> None:
        self._since: float | None = None
        self._count = 0

    @property
    def since(self) -> float | None:
        """Return when the current window began; None if nothing is expected of the client."""
        return self._since

    def reset(self) -> None:
        """Start a new window at the next measurement: nothing is expected of the client now."""
        self._since = None

    def is_too_slow(self, count: int, now: float, *, seconds: float, least: int) -> bool:
        """Return whether ``count`` grew by less than ``least`` bytes in the last ``seconds``."""
        if self._since is None or count - self._count >= least:
            self._since, self._count = now, count
            return False
        return now - self._since > seconds


class _RequestTarget(NamedTuple):
    """The target of a request: its path as sent, its decoded path, and its query."""

    raw_path: bytes
    path: str
    query: bytes


class LimitedProtocol(HttpToolsProtocol):
    """One connection. `Connections` decides whether it is admitted, and regularly has it check its deadlines.

    The parser's callbacks replace uvicorn's: the service has neither WebSockets nor a root path, and small requests on kept
    connections repeat the target of the previous one.
    """

    def __init__(self, *, connections: Connections, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._registry = connections
        self._limits = connections.limits
        self.source = ""
        self._peer = ""
        self._refusal: tuple[Reason, Problem] | None = None
        self._ignored_since: float | None = None  # input is dropped from then on
        self._ignored = 0
        self._is_refused = False
        self._is_draining = False  # only the end of a response is missing
        self._head_since: float | None = self.loop.time()
        self._in_head = False
        self._header_lines = 0
        self._hosts: list[bytes] = []
        self._loose = 0  # bytes of a head, or of a body's framing, since the last complete element
        self._body_bytes = 0
        self._receiving = _Window()
        self._sending = _Window()
        self._idle_until: float | None = None  # no request is in progress
        self._wire: GatheringTransport

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit or refuse the connection."""
        below = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass
        self._wire = GatheringTransport(below, self.loop)
        super().connection_made(self._wire)
        self._peer = self.client[0] if self.client else ""
        self.source = self._peer if self._registry.is_proxy(self._peer) else source_of(self._peer)
        socket = below.get_extra_info("socket")
        reason = self._registry.admit(self, descriptor=socket.fileno() if socket else 0)
        if reason is not None:
            sentence = "The service has as many connections as it accepts. Use fewer, or try again later."
            self._refuse(reason, UnavailableProblem(reason, sentence, retry_seconds=_RETRY_SECONDS))
            if not self._registry.keep_refused(self):
                self._wire.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the registry."""
        self._registry.remove(self)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the bytes, within the limits of a request head."""
        if self._ignored_since is not None:
            self._ignored += len(data)
            if self._ignored > _DRAIN_BYTES:
                self.flow.pause_reading()
            return
        self._idle_until = None
        if self._head_since is None and not self._is_responding:
            self._head_since = self.loop.time()
        try:
            self._parse(data)
        except (httptools.HttpParserError, _RequestRefused) as error:
            reason, problem = self._refusal or ("bad_request", _malformed(error))
            self._refuse(reason, problem)
        except httptools.HttpParserUpgrade:  # the request gets its response, without the upgrade
            self.cycle.keep_alive = False
            self._ignore_input()

    def _parse(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            # While a head is incomplete, parse no more bytes than it may still have.
            size = len(view) if self._is_receiving_body else max(self._limits.head_bytes - self._loose, 0) + 1
            before = self._loose
            self._loose = before + len(view[:size])
            self.parser.feed_data(view[:size])
            if self._loose > self._limits.head_bytes:
                self._raise_head_too_large()
            view = view[size:]

    # Called by the parser

    def on_message_begin(self) -> None:
        """Begin a request, and the deadline of its head."""
        super().on_message_begin()
        self._in_head = True
        self._header_lines = 0
        self._hosts.clear()
        if self._head_since is None:
            self._head_since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        """Append to the URL, up to the limit."""
        if len(self.url) + len(url) > self._limits.target_bytes:
            self._refusal = "target_too_long", TargetTooLong(self._limits.target_bytes)
            raise _RequestRefused
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Append a header line, up to the limit; trailers are counted and dropped."""
        self._header_lines += 1
        if self._header_lines > self._limits.header_lines:
            self._raise_head_too_large()
        if self._in_head:
            name, value = name.lower(), value.rstrip(b" \t")
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            elif name == b"host":
                self._hosts.append(value)
            elif name == b"transfer-encoding" and value.lower() != b"chunked":
                self._raise_bad_request("The only supported Transfer-Encoding is 'chunked'.")
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Start the request, unless too many wait."""
        if len(self.pipeline) >= _PIPELINED_REQUESTS:
            sentence = f"More than {_PIPELINED_REQUESTS} requests came before the response to the first one."
            self._refusal = "too_many_requests_at_once", Invalid("too_many_requests_at_once", sentence)
            raise _RequestRefused
        self._start_cycle()
        self._in_head = False
        self._head_since = None
        self._loose = 0
        self._receiving.reset()

    def _start_cycle(self) -> None:
        """Start a request after its head is complete, behind those that came before it."""
        url, version = self.url, self.parser.get_http_version()
        self._check_version_and_host(version)
        # A query may hold a signature, so it is not kept.
        is_cached = len(url) <= _CACHED_TARGET_BYTES and b"?" not in url
        target = _cached_target(url) if is_cached else _target(url)
        scope: Any = self.scope
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        scope["raw_path"], scope["path"], scope["query_string"] = target
        scope["state"][DRAIN_BEGUN] = self._begin_drain
        earlier = self._newest
        self.cycle = ResponseCycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue and version != "1.0",
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """Count the bytes and pass them on."""
        self._loose = 0
        self._body_bytes += len(body)
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """End the request."""
        self._loose = 0
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.more_body = False
        cycle.scope["state"][BODY_RECEIVED] = True
        cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Start the next request, or the time after which an idle connection is closed.

        The deadline of a head that came meanwhile starts now.
        """
        self._is_draining = False
        if self._head_since is not None:
            self._head_since = self.loop.time()
        if self._is_cut_short:
            self._wire.close()
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for long enough.

        A timer for each response would cost as much as parsing a request, so one timer is reused.
        """
        self.timeout_keep_alive_task = None
        if self._idle_until is None:
            return
        if self.loop.time() < self._idle_until:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    @property
    def _is_cut_short(self) -> bool:
        """Return whether the last request has its response, but its body has not arrived completely."""
        cycle = self._newest
        return cycle is not None and cycle.response_complete and cycle.more_body

    def _begin_drain(self) -> None:
        self._is_draining = True
        self._registry.note_ending(self)

    def _check_version_and_host(self, version: str) -> None:
        """Refuse what RFC 9112 (3.2) refuses: HTTP/1.1 without one valid Host. Links for uploads begin with it."""
        if version not in ("1.0", "1.1"):
            self._raise_bad_request("The request is not HTTP/1.1.")
        if version == "1.0" and any(name == b"transfer-encoding" for name, _ in self.headers):
            self._raise_bad_request("Transfer-Encoding is for HTTP/1.1.")
        if len(self._hosts) > 1 or (not self._hosts and version == "1.1"):
            self._raise_bad_request("The request must have one header line Host.")
        if self._hosts and not HOST.fullmatch(self._hosts[0]):
            self._raise_bad_request("The header Host must be a host name or address, and may have a port.")

    def _raise_bad_request(self, sentence: str) -> NoReturn:
        self._refusal = "bad_request", Invalid("malformed_request", sentence)
        raise _RequestRefused

    def _raise_head_too_large(self) -> None:
        self._refusal = (
            "head_too_large",
            HeadTooLarge(most_bytes=self._limits.head_bytes, most_lines=self._limits.header_lines),
        )
        raise _RequestRefused

    # Called by the registry

    @property
    def awaits_request(self) -> bool:
        """See `workspaced.server.connections.ManagedConnection`."""
        return not self._is_responding

    @property
    def awaits_client(self) -> bool:
        """See `workspaced.server.connections.ManagedConnection`."""
        return not self._is_responding or self._awaits_body or self._wire.unsent > 0

    @property
    def is_ending(self) -> bool:
        """See `workspaced.server.connections.ManagedConnection`."""
        return self._is_draining or (self._ignored_since is not None and self._awaits_end)

    @property
    def _awaits_end(self) -> bool:
        """Return whether no request is being handled, or a refused client does not read the earlier responses."""
        return not self._is_responding or (self._is_refused and self._wire.unsent > 0)

    @property
    def stalled_since(self) -> float | None:
        """See `workspaced.server.connections.ManagedConnection`."""
        windows = self._sending if self._wire.unsent else None, self._receiving if self._awaits_body else None
        return min((one.since for one in windows if one and one.since is not None), default=None)

    def close_overdue(self, now: float) -> None:
        """See `workspaced.server.connections.ManagedConnection`."""
        if self._is_not_reading(now):
            self._note("not_reading")
            self._wire.abort()
        elif self._ignored_since is not None:
            self._end_drain(now)
        elif not self._awaits_body:
            self._receiving.reset()
            if not self._is_responding and self._head_since is not None:
                self._close_slow_head(now)
        elif self._is_sending_too_slowly(now):
            self._refuse("body_too_slow", RequestTimeout("The request's body was sent too slowly."))

    def evict(self) -> None:
        """See `workspaced.server.connections.ManagedConnection`."""
        self._wire.abort()

    def _close_slow_head(self, now: float) -> None:
        if self._head_since is None or now - self._head_since <= self._limits.head_seconds:
            return
        if self._in_head:
            self._refuse("head_timeout", RequestTimeout("The request's head was not complete in time."))
        else:  # no request has begun, so there is no response
            self._note("head_timeout")
            self._wire.close()

    def _is_sending_too_slowly(self, now: float) -> bool:
        return self._receiving.is_too_slow(self._body_bytes, now, seconds=self._limits.stall_seconds, least=self._least)

    def _is_not_reading(self, now: float) -> bool:
        if not self._wire.unsent:
            self._sending.reset()
            return False
        return self._sending.is_too_slow(self._wire.sent, now, seconds=self._limits.stall_seconds, least=self._least)

    @property
    def _least(self) -> int:
        """Return how many bytes a client must send or read in `stall_seconds`."""
        return max(1, self._limits.least_bytes_per_second * self._limits.stall_seconds)

    @property
    def _is_responding(self) -> bool:
        """Return whether a request has begun and its response is not complete."""
        cycle = self._newest
        return cycle is not None and not cycle.response_complete and not cycle.disconnected

    @property
    def _newest(self) -> RequestResponseCycle | None:
        """Return the last request with a complete head; None before the first."""
        return self.cycle

    @property
    def _is_receiving_body(self) -> bool:
        cycle = self._newest
        return not self._in_head and cycle is not None and cycle.more_body

    @property
    def _awaits_body(self) -> bool:
        """Return whether the client must act: its body is incomplete, and the service is ready to read more of it."""
        cycle = self.cycle
        return (
            self._is_responding and cycle.more_body and not self.flow.read_paused and not cycle.waiting_for_100_continue
        )

    # Refusals

    def _refuse(self, reason: Reason, problem: Problem) -> None:
        """Send a problem, unless it would come between other responses, and end the connection."""
        self._note(reason)
        self._is_refused = True
        if self._wire.is_closing():
            self._ignore_input()
            return
        earlier = bool(self.pipeline) or (self._is_responding and not self.cycle.more_body)
        if earlier or (self._is_responding and self.cycle.response_started):
            self.cycle.keep_alive = False  # earlier requests get their responses, then the connection ends
            self._disconnect_body()
            self._ignore_input()
            return
        self._disconnect_body()
        self._wire.write(_problem_response(problem, self._path))
        self._ignore_input()
        self._wire.write_eof()

    def _disconnect_body(self) -> None:
        """Report a disconnected client to a request with an incomplete body."""
        if self._is_responding and self.cycle.more_body:
            if self.cycle.response_started:
                self._wire.close()
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _ignore_input(self) -> None:
        self._registry.note_ending(self)
        self._ignored_since = self.loop.time()
        self.loop.call_at(self._ignored_since + _DRAIN_SECONDS, self._end_drain, self._ignored_since + _DRAIN_SECONDS)
        self._head_since = None
        self.flow.resume_reading()

    def _end_drain(self, now: float) -> None:
        if self._ignored_since is not None and now - self._ignored_since >= _DRAIN_SECONDS and self._awaits_end:
            self._wire.abort()

    @property
    def _path(self) -> str:
        """Return the requested path without its query, which may contain a signature."""
        url: bytes = getattr(self, "url", b"")
        return url.partition(b"?")[0].decode("ascii", "backslashreplace")[:1_024]

    def _note(self, reason: Reason) -> None:
        self._registry.note(reason, self._peer)


def _target(url: bytes) -> _RequestTarget:
    """Return the parts of a target.

    Raises:
        httptools.HttpParserInvalidURLError: it has no valid form.
        UnicodeDecodeError: its path is not ASCII.
    """
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return _RequestTarget(parsed.path, unquote(path) if "%" in path else path, parsed.query or b"")


_cached_target = lru_cache(maxsize=1_024)(_target)


def _malformed(error: Exception) -> Problem:
    if isinstance(error, httptools.HttpParserCallbackError):
        return Invalid(
            "bad_request_target", "The request's target can't be read. Percent-encode characters that are not ASCII."
        )
    return Invalid("malformed_request", f"The request is not HTTP/1.1 ({error}).")


def _problem_response(problem: Problem, path: str) -> bytes:
    request_id = new_request_id()
    response = problem_response(problem, instance=path, request_id=request_id, document_form=False)
    headers = (
        *response.headers,
        (names.REQUEST_ID, request_id),
        ("Cache-Control", "private, no-cache"),
        ("Content-Length", str(len(response.body))),
        ("Connection", "close"),
    )
    lines = "".join(f"{name.lower()}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {problem.status} {problem.title}\r\n{lines}\r\n".encode() + response.body
