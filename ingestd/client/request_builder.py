"""The builder of httpx requests, and the API key, which is sent in exactly one header."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx

from ingestd.client.request import Request
from ingestd.wire import names

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")
_CLIENT_ID = re.compile(r"[\x21-\x7e]{1,128}")
BASE_HEADERS = {"Accept": f"{names.JSON}, {names.PROBLEM_JSON}", "User-Agent": "ingestd"}
"""Headers of every request."""


class RenewableKey:
    """The API key of one client. It may be replaced while the client is in use. None: the client is anonymous.

    ``read`` returns the stored key; None if the key can't be read or never changes.

    Raises:
        ValueError: the key has characters that an HTTP header can't hold. The sentence does not repeat the key.
    """

    def __init__(self, api_key: str | None, *, read: Callable[[], str | None] = lambda: None) -> None:
        if api_key is not None and not _VISIBLE_ASCII.fullmatch(api_key):
            raise ValueError("The API key is empty or has characters that an HTTP header can't hold.")
        self._api_key, self._read = api_key, read
        self._rejected = False

    def current(self) -> str | None:
        """Return the key for the next request. After a 401, read the key again first."""
        if self._rejected:
            self._rejected = False
            if (api_key := self._read()) is not None:
                self._api_key = api_key
        return self._api_key

    def reject(self) -> None:
        """Record that the service responded with 401."""
        self._rejected = True


class RequestBuilder:
    """Builds the httpx requests of one client.

    Raises:
        ValueError: the client id is longer than 128 characters, empty, or has characters that a header can't hold.
    """

    def __init__(self, *, key: RenewableKey, client_id: str) -> None:
        if not _CLIENT_ID.fullmatch(client_id):
            raise ValueError("The client id must be 1 to 128 visible ASCII characters.")
        self.key = key
        self.client_id = client_id

    def build(self, http: httpx.AsyncClient | httpx.Client, request: Request[Any]) -> httpx.Request:
        """Return the httpx request for ``request``.

        Raises:
            Unaddressable: a name can't be a segment of a path.
        """
        operation = request.operation
        headers = dict(request.headers)
        if (api_key := self.key.current()) is not None:
            headers[names.API_KEY] = api_key
        if operation.method != "GET":
            # The interface document requires this header for some operations. For all other operations, the audit log uses it.
            headers.setdefault(names.CLIENT_ID, self.client_id)
        if request.body is not None:
            headers.setdefault("Content-Type", names.JSON)
        return http.build_request(
            operation.method, request.path, params=request.query, content=request.body, headers=headers
        )
