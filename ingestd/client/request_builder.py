"""The builder of httpx messages from requests: path, headers and body. The API key is in one header only."""

from __future__ import annotations

import re
from typing import Any

import httpx

from ingestd.client.api_key import RenewableKey
from ingestd.client.operations import fill_path
from ingestd.client.request import Request
from ingestd.wire import names

_CLIENT_ID = re.compile(r"[\x21-\x7e]{1,128}")
BASE_HEADERS = {"Accept": f"{names.JSON}, {names.PROBLEM_JSON}", "User-Agent": "ingestd"}
"""Headers of every request."""


class RequestBuilder:
    """Builds the messages of one client.

    Raises:
        ValueError: the client id is longer than 128 characters, empty, or has characters that a header can't hold.
    """

    def __init__(self, *, key: RenewableKey, client_id: str) -> None:
        if not _CLIENT_ID.fullmatch(client_id):
            raise ValueError("The client id must be 1 to 128 visible ASCII characters.")
        self.key = key
        self.client_id = client_id

    def build(
        self, http: httpx.AsyncClient | httpx.Client, request: Request[Any], *, blocking: bool = False
    ) -> httpx.Request:
        """Return the message of a request.

        Raises:
            Unaddressable: a name can't be a segment of a path.
        """
        operation = request.operation
        headers = dict(request.headers)
        if request.url is None and (api_key := self.key.current()) is not None:
            # `url` comes from a response. It contains all that its server needs, and that server must not get the key.
            headers[names.API_KEY] = api_key
        if operation.method != "GET":
            # The interface document requires the header for some operations; for the others, the audit log uses it.
            headers.setdefault(names.CLIENT_ID, self.client_id)
        if request.body is not None:
            headers.setdefault("Content-Type", names.JSON)
        content: Any = request.body
        if request.content is not None:
            content = request.content.chunks() if blocking else request.content.async_chunks()
        url = request.url or fill_path(operation, request.path)
        return http.build_request(operation.method, url, params=request.query, content=content, headers=headers)


def address_of(http: httpx.AsyncClient | httpx.Client) -> str:
    """Return scheme, host and port of the service, without user and password."""
    parts = http.base_url
    return f"{parts.scheme}://{parts.netloc.decode('ascii')}"
