"""From the exceptions of httpx to the faults of the outcome table. Nothing of an exception's text is kept."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpx

from ingestd.core.outcome import Fault

_BY_TYPE: tuple[tuple[type[Exception], Fault], ...] = (
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


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def fault_of(error: httpx.HTTPError | httpx.InvalidURL) -> Fault:
    """Which fault an exception of httpx is."""
    if isinstance(error, httpx.ConnectError):
        for cause in _causes(error):
            if isinstance(cause, socket.gaierror):
                return Fault.UNRESOLVED
            if isinstance(cause, ssl.SSLError):
                return Fault.TLS
    return next((fault for kind, fault in _BY_TYPE if isinstance(error, kind)), Fault.PROTOCOL)
