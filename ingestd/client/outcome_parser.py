"""The conversion of an HTTP response or an error to a `ServiceResponse`.

Responses are read, checked and classified in the same way for every operation.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import httpx
import msgspec

from ingestd.client.bodies import KeyChanged, ResponseMismatch, UnreadableBody, ValueChanged
from ingestd.client.records import BulkResult
from ingestd.client.request import NONE, ApiOperation, Request
from ingestd.client.response import ProblemDetails, ServiceResponse, parse_problem
from ingestd.client.transport import TransportOptions
from ingestd.core.clock import Now, seconds_of
from ingestd.core.errors import causes
from ingestd.core.outcome import Facts, Fault, classify
from ingestd.core.rate import parse_rate_limit
from ingestd.telemetry.request_counts import RequestCounts
from ingestd.wire import names
from ingestd.wire.bulk import HEADER as BULK_HEADER
from ingestd.wire.bulk import parse_bulk_limits
from ingestd.wire.origin import HEADER as ORIGIN_HEADER
from ingestd.wire.origin import parse_origin_limits
from ingestd.wire.retry_after import retry_after_seconds
from ingestd.wire.writer import FENCE_HEADER, parse_writer
from ingestd.wire.writer import HEADER as WRITER_HEADER

T = TypeVar("T")

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""The names and values of headers, as they arrived."""

CONTENT_ERRORS = (UnreadableBody, ResponseMismatch, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors which mean that the content of a success can't be used."""

_FAULTS_BY_NUMBER = {
    errno.EMFILE: Fault.NO_DESCRIPTORS,
    errno.ENFILE: Fault.NO_DESCRIPTORS,
    errno.EACCES: Fault.NOT_PERMITTED,
    errno.EPERM: Fault.NOT_PERMITTED,
    errno.ENETUNREACH: Fault.NO_ROUTE,
    errno.EHOSTUNREACH: Fault.NO_ROUTE,
    errno.ENETDOWN: Fault.NO_ROUTE,
}
"""The faults of a connection that fails because of this machine or the network, and not because of the service."""


_EXPLAINED = {Fault.MISMATCH, Fault.KEY_CHANGED, Fault.VALUE_CHANGED}
"""Faults with an error that has a sentence for people. Other errors may show parts of a body."""

_NOT_MODIFIED = 304

_USED = {
    name.lower().encode("ascii"): name
    for name in (
        "Idempotent-Replayed",
        names.ACCEPT_ENCODING,
        BULK_HEADER,
        ORIGIN_HEADER,
        FENCE_HEADER,
        names.KEY_EXPIRES,
        names.REQUEST_ID,
        names.RATE_LIMIT,
        names.RATE_LIMIT_POLICY,
        WRITER_HEADER,
    )
}


class OutcomeParser:
    """Converts the responses of one client.

    ``now`` returns seconds since the epoch, for dates in `Retry-After`. ``clock`` returns seconds; every ``started`` is a time
    of this clock. ``counts`` receives the responses. ``options``: the options of the client's connections. The default cap of
    `Retry-After` is a day. It is for programs that, unlike the daemon, decide how long they wait.
    """

    def __init__(
        self,
        *,
        now: Now = time.time,
        clock: Callable[[], float] = time.perf_counter,
        retry_after_cap_seconds: float = 86_400.0,
        counts: RequestCounts | None = None,
        options: TransportOptions | None = None,
    ) -> None:
        self.clock = clock
        self._counts = counts if counts is not None else RequestCounts()
        self._now = now
        self._by_proxy = options is not None and options.proxy is not None
        self._retry_after_cap_seconds = retry_after_cap_seconds

    def parse(
        self,
        request: Request[T],
        status: int,
        raw: RawHeaders,
        body: bytes,
        *,
        started: float,
        headers: Mapping[str, str] = NONE,
    ) -> ServiceResponse[T]:
        """Return the response to ``request``, from its parts. ``headers``: needed if the value depends on a header."""
        operation = request.operation
        if status == _NOT_MODIFIED and request.accepts_unchanged:
            return self._classified(operation, _success(200), started, raw)
        if not 200 <= status < 300:
            return self._refused(operation, status, raw, body, started)
        try:
            value = request.read(body, headers)
            if request.check is not None:
                request.check(value)
        except CONTENT_ERRORS as error:
            return self.failed(operation, error, started, status=status)
        return self._classified(operation, _facts_of(status, value), started, raw, value=value)

    def failed(
        self, operation: ApiOperation, error: Exception, started: float, *, status: int | None = None
    ) -> ServiceResponse[Any]:
        """Return the response for one of `transport_errors` or `CONTENT_ERRORS`."""
        fault = fault_of(error, by_proxy=self._by_proxy)
        is_explained = fault in _EXPLAINED or isinstance(error, msgspec.ValidationError)
        words = f"{str(error).rstrip('.')}." if is_explained else ""
        return self._classified(operation, Facts(fault=fault, status=status, words=words), started, ())

    def _refused(
        self, operation: ApiOperation, status: int, raw: RawHeaders, body: bytes, started: float
    ) -> ServiceResponse[Any]:
        headers = httpx.Headers(list(raw))
        problem = parse_problem(
            status,
            body,
            request_id=headers.get(names.REQUEST_ID, ""),
            code=headers.get(names.ERROR_CODE, ""),
            content_type=headers.get("Content-Type", ""),
        )
        wait = retry_after_seconds(
            headers.get("Retry-After"), now=self._now(), cap_seconds=self._retry_after_cap_seconds
        )
        facts = Facts(
            status=status,
            words=problem.words,
            code=problem.code,
            location=_without_credentials(headers.get("Location", "")),
            retry_after_seconds=wait,
            recognized=problem.recognized,
        )
        return self._classified(operation, facts, started, raw, problem=problem)

    def _classified(
        self,
        operation: ApiOperation,
        facts: Facts,
        started: float,
        raw: RawHeaders,
        *,
        value: Any = None,
        problem: ProblemDetails | None = None,
    ) -> ServiceResponse[Any]:
        # One pass over all headers costs as much as one lookup in httpx's headers. Few responses have any of the used headers.
        used = {_USED[name.lower()]: text.decode("latin-1") for name, text in raw if name.lower() in _USED}
        outcome = classify(facts)
        seconds = self.clock() - started
        self._counts.add(operation.name, outcome.word, seconds)
        response: ServiceResponse[Any] = ServiceResponse(
            operation=operation.name,
            outcome=outcome,
            status=facts.status,
            value=value,
            problem=problem,
            facts=facts,
            milliseconds=seconds * 1000,
            bulk=parse_bulk_limits(used[BULK_HEADER]) if BULK_HEADER in used else None,
            origin=parse_origin_limits(used[ORIGIN_HEADER]) if ORIGIN_HEADER in used else None,
            replayed=used.get("Idempotent-Replayed", "").lower() == "true",
            request_id=(problem.request_id if problem else "") or used.get(names.REQUEST_ID, ""),
            takes_gzip="gzip" in used.get(names.ACCEPT_ENCODING, "").lower(),
            rate=parse_rate_limit(used.get(names.RATE_LIMIT_POLICY), used.get(names.RATE_LIMIT)),
            fenced=FENCE_HEADER in used,
            writer=parse_writer(used[WRITER_HEADER]) if WRITER_HEADER in used else None,
        )
        if raw and not response.is_refusal_of_proxy:
            ends = used.get(names.KEY_EXPIRES)
            self._counts.key_expires_at = seconds_of(ends) if ends else None
        return response


@cache
def _success(status: int) -> Facts:
    """Return one shared value for all successes of a status."""
    return Facts(status=status)


def _facts_of(status: int, value: object) -> Facts:
    if isinstance(value, BulkResult) and value.results is not None:
        return Facts(status=status, refused=sum(result.status >= 300 for result in value.results))
    return _success(status)


def _without_credentials(location: str) -> str:
    """Return scheme, host and path of a redirect's target."""
    try:
        url = httpx.URL(location)
    except httpx.InvalidURL:
        return ""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None)) if location else ""


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the errors which mean that no response, or only a part of a response, arrived."""
    return (httpx.HTTPError, httpx.InvalidURL)


def _faults_by_type() -> tuple[tuple[type[Exception] | tuple[type[Exception], ...], Fault], ...]:
    return (
        (KeyChanged, Fault.KEY_CHANGED),
        (ValueChanged, Fault.VALUE_CHANGED),
        (ResponseMismatch, Fault.MISMATCH),
        (CONTENT_ERRORS, Fault.UNREADABLE),
        (httpx.ConnectTimeout, Fault.CONNECT_TIMEOUT),
        (httpx.WriteTimeout, Fault.WRITE_TIMEOUT),
        (httpx.ReadTimeout, Fault.READ_TIMEOUT),
        (httpx.PoolTimeout, Fault.POOL_TIMEOUT),
        (httpx.ConnectError, Fault.REFUSED),
        (httpx.ProxyError, Fault.PROXY),
        (httpx.NetworkError, Fault.BROKEN),
        (httpx.RemoteProtocolError, Fault.BROKEN),
        (httpx.DecodingError, Fault.UNREADABLE),
    )


def fault_of(error: Exception, *, by_proxy: bool = False) -> Fault:
    """Return the fault of one of `transport_errors` or `CONTENT_ERRORS`. ``by_proxy``: the client connects to a proxy."""
    if isinstance(error, httpx.ConnectError):
        for cause in causes(error):
            if isinstance(cause, ssl.SSLError):
                from ingestd.sdk.tls import tls_fault  # noqa: PLC0415 - the package imports much

                return Fault.NO_TLS if tls_fault(cause) == "no tls" else Fault.TLS
            if isinstance(cause, socket.gaierror):
                if not by_proxy:
                    return Fault.UNRESOLVED
            elif isinstance(cause, OSError) and cause.errno in _FAULTS_BY_NUMBER:
                return _FAULTS_BY_NUMBER[cause.errno]
        if by_proxy:
            return Fault.PROXY
    return next((fault for kind, fault in _faults_by_type() if isinstance(error, kind)), Fault.PROTOCOL)
