"""The faults of exceptions, for the outcome table. The text of an exception of httpx is not used."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpx
import msgspec

from ingestd.client.checks import ResponseMismatch, UnreadableBody
from ingestd.core.outcome import Fault

TRANSPORT_ERRORS = (httpx.HTTPError, httpx.InvalidURL)
"""No response arrived, or not all of it."""

CONTENT_ERRORS = (UnreadableBody, ResponseMismatch, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The content of a success can't be used."""

_BY_TYPE: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Fault], ...] = (
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


def fault_of(error: Exception) -> Fault:
    """Return the fault of one of `TRANSPORT_ERRORS` or `CONTENT_ERRORS`."""
    if isinstance(error, httpx.ConnectError):
        for cause in _causes(error):
            if isinstance(cause, socket.gaierror):
                return Fault.UNRESOLVED
            if isinstance(cause, ssl.SSLError):
                return Fault.TLS
    return next((fault for kind, fault in _BY_TYPE if isinstance(error, kind)), Fault.PROTOCOL)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
