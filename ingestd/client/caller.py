"""Who calls which service: what is the same of every request, for the asynchronous and the blocking client alike.

The API key goes into one header and nowhere else: no message, repr or event has it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypedDict

import httpx

from ingestd.client.operations import fill
from ingestd.client.request import Request
from ingestd.client.transport import Timeouts, TransportOptions
from ingestd.wire import names

Content: TypeAlias = Iterable[bytes] | AsyncIterable[bytes]

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
_CLIENT_ID = re.compile(r"[\x21-\x7e]{1,128}")
_ACCEPT = f"{names.JSON}, {names.PROBLEM_JSON}"


class HttpOptions(TypedDict):
    """What both clients of httpx are made with."""

    base_url: str
    headers: dict[str, str]
    timeout: httpx.Timeout
    limits: httpx.Limits
    follow_redirects: bool
    trust_env: bool
    proxy: str | None
    verify: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """``api_key`` None: nobody in particular, who may read public workspaces.

    Raises:
        ValueError: the key or the client id has characters that can't stand in a header; the text is not repeated.
    """

    url: str = field(repr=False)
    api_key: str | None = field(repr=False)
    client_id: str

    def __post_init__(self) -> None:
        if self.api_key is not None and not _VISIBLE_ASCII.fullmatch(self.api_key):
            raise ValueError("The API key is empty or has characters that can't stand in an HTTP header.")
        if not _CLIENT_ID.fullmatch(self.client_id):
            raise ValueError("The client id must be 1 to 128 visible ASCII characters.")

    def http_options(self, timeouts: Timeouts, transport: TransportOptions) -> HttpOptions:
        """What to make a client of httpx with.

        Raises:
            UnusableCertificate: a file of the transport's can't be used.
        """
        headers = {"Accept": _ACCEPT, "User-Agent": "ingestd"}
        if self.api_key is not None:
            headers[names.API_KEY] = self.api_key
        return {
            "base_url": self.url.rstrip("/"),
            "headers": headers,
            "timeout": timeouts.for_httpx(),
            # Servers close idle connections after five seconds and more; leaving first avoids a request into a closing one.
            "limits": httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=3.0),
            # The API key would travel along.
            "follow_redirects": False,
            # Proxies and certificates come from who configures the client, not from the environment of who starts it.
            "trust_env": transport.from_environment,
            "proxy": transport.proxy,
            "verify": transport.tls(),
        }

    def message(
        self, http: httpx.AsyncClient | httpx.Client, request: Request[Any], content: Content | None = None
    ) -> httpx.Request:
        """The request as it is sent; ``content`` is a body in pieces.

        Raises:
            Unaddressable: a name can't stand in the path.
        """
        operation = request.operation
        sent = dict(request.headers)
        if operation.method != "GET":
            # The document demands it of some rows and knows it of none of the others; harmless there, and it helps an audit.
            sent.setdefault(names.CLIENT_ID, self.client_id)
        if request.body is not None:
            sent.setdefault("Content-Type", names.JSON)
        url = request.url or fill(operation, request.names)
        message = http.build_request(
            operation.method, url, params=request.query, content=content or request.body, headers=sent
        )
        if request.url is not None:
            # Whoever is there was named by an answer, not by us, and what it needs to know is in the URL.
            message.headers.pop(names.API_KEY, None)
        return message


def caller_of(url: str, api_key: str | None, client_id: str | None) -> Caller:
    """A caller with a client id, made up where none is given.

    Raises:
        ValueError: as of `Caller`.
    """
    return Caller(url=url, api_key=api_key, client_id=client_id or f"client-{secrets.token_hex(6)}")


def address_of(http: httpx.AsyncClient | httpx.Client) -> str:
    """Scheme, host and port; nothing of a user or a password."""
    parts = http.base_url
    return f"{parts.scheme}://{parts.netloc.decode('ascii')}"
