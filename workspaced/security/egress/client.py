"""One request to a URL that a user set: checked, without redirects, limited in time and in bytes read."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import httpcore

from workspaced.security.egress.backend import GuardedBackend, Resolver, system_resolver
from workspaced.security.egress.rules import EgressRules, UnsafeTarget


class ReceiverUnreachable(Exception):
    """There was no complete response. The text is a sentence; ``code`` is stable."""

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        super().__init__(sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverResponse:
    """The response, with at most the permitted bytes of the body. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a request: its seconds, and how many bytes of the response are read."""

    connect_seconds: float = 5.0
    total_seconds: float = 15.0
    response_bytes: int = 65_536


class EgressClient:
    """A context manager. Each request has its own connection, so that the name is resolved and checked again.

    Proxies and other variables of the environment are ignored.
    """

    def __init__(
        self,
        rules: EgressRules,
        *,
        bounds: Bounds,
        resolve: Resolver = system_resolver,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules
        self._bounds = bounds
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust or httpcore.default_ssl_context(),
            max_connections=None,
            max_keepalive_connections=0,
            network_backend=GuardedBackend(rules, resolve=resolve),
        )

    async def __aenter__(self) -> Self:
        await self._pool.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.__aexit__(kind, error, trace)

    async def post(self, url: str, *, headers: Sequence[tuple[str, str]], body: bytes) -> ReceiverResponse:
        """Send a POST; return the response, whatever its status, redirects included.

        Raises:
            ReceiverUnreachable: the URL is not permitted, or there was no complete response in time.
        """
        try:
            target = self._rules.target(url)
            async with asyncio.timeout(self._bounds.total_seconds):
                return await self._exchange(
                    httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
                    [("Host", target.authority), ("Content-Length", str(len(body))), *headers],
                    body,
                )
        except UnsafeTarget as error:
            raise ReceiverUnreachable("unsafe_url", f"The URL is not permitted. {error}") from error
        except (TimeoutError, httpcore.TimeoutException) as error:
            sentence = f"No response within {self._bounds.total_seconds:g} seconds."
            raise ReceiverUnreachable("timeout", sentence) from error
        except (httpcore.NetworkError, ssl.SSLError) as error:
            raise ReceiverUnreachable(
                "connection_failed", f"The connection failed ({str(error) or type(error).__name__})."
            ) from error
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
            sentence = f"The response is not valid HTTP ({error})."
            raise ReceiverUnreachable("bad_answer", sentence) from error  # codespell:ignore answer

    async def _exchange(self, url: httpcore.URL, headers: Sequence[tuple[str, str]], body: bytes) -> ReceiverResponse:
        sent = [(name.encode("ascii"), value.encode("utf-8")) for name, value in headers]
        timeouts = {"timeout": {"connect": self._bounds.connect_seconds}}
        async with self._pool.stream("POST", url, headers=sent, content=body, extensions=timeouts) as response:
            read = bytearray()
            async for part in response.aiter_stream():
                read += part
                if len(read) >= self._bounds.response_bytes:
                    break
            received = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            return ReceiverResponse(
                status=response.status, headers=received, body=bytes(read[: self._bounds.response_bytes])
            )
