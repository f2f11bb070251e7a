"""The faults of exceptions, for the outcome table. The text of an exception of httpx is not used."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import TypeAlias

import httpx
import msgspec

from ingestd.client.checks import KeyChanged, ResponseMismatch, UnreadableBody
from ingestd.core.outcome import Fault

CONTENT_ERRORS = (UnreadableBody, ResponseMismatch, msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The content of a success can't be used."""

_FAULTS_BY_NUMBER = {
    errno.EMFILE: Fault.NO_DESCRIPTORS,
    errno.ENFILE: Fault.NO_DESCRIPTORS,
    errno.EACCES: Fault.NOT_PERMITTED,
    errno.EPERM: Fault.NOT_PERMITTED,
    errno.ENETUNREACH: Fault.NO_ROUTE,
    errno.EHOSTUNREACH: Fault.NO_ROUTE,
    errno.ENETDOWN: Fault.NO_ROUTE,
}
"""The causes of a failed connection that are on this machine, whatever the service does."""

_Errors: TypeAlias = type[Exception] | tuple[type[Exception], ...]


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the errors after which no response arrived, or not all of it."""
    return (httpx.HTTPError, httpx.InvalidURL)


def _faults_by_type() -> tuple[tuple[_Errors, Fault], ...]:
    return (
        (KeyChanged, Fault.KEY_CHANGED),
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
        for cause in _causes(error):
            if isinstance(cause, ssl.SSLError):
                return Fault.TLS
            if isinstance(cause, socket.gaierror):
                if not by_proxy:
                    return Fault.UNRESOLVED
            elif isinstance(cause, OSError) and cause.errno in _FAULTS_BY_NUMBER:
                return _FAULTS_BY_NUMBER[cause.errno]
        if by_proxy:
            return Fault.PROXY
    return next((fault for kind, fault in _faults_by_type() if isinstance(error, kind)), Fault.PROTOCOL)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
