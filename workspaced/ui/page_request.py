"""A request to a page, and the requests that this page sends to the API."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from ingestd.wire import names
from workspaced.core.asgi import Receive
from workspaced.core.json_body import decode, encode
from workspaced.core.json_schema import Schema
from workspaced.core.text import as_uuid
from workspaced.http.headers import RequestHeaders
from workspaced.http.internal_client import EMPTY_BODY, InternalClient, whole_body
from workspaced.http.responses import Response
from workspaced.ui.sessions import Session

CLIENT_ID: Final = "workspaced-ui"
"""The client id of changes that users make on the pages. The audit log and domain events have this id."""
_NEXT_CURSOR = re.compile(r'<(?>[^<>]*?[?&]cursor=)([^&<>]*+)[^<>]*+>; rel="next"')


class PageRefused(Exception):
    """Raised to show an error page with a sentence instead of the requested page."""

    def __init__(
        self, status: int, title: str, sentence: str, *, code: str = "", mistakes: Sequence[tuple[str, str]] = ()
    ) -> None:
        """``code``: the code of the API's error; empty if the API did not refuse the request.

        ``mistakes``: for each mistake that the API reports, the JSON Pointer into the API's body, and a sentence.
        """
        self.status = status
        self.code = code
        self.mistakes = tuple(mistakes)
        self.title = title
        self.sentence = sentence
        super().__init__(sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """The API's response: the parsed body, and the headers by their names in lower case."""

    value: Any
    headers: Mapping[str, str]

    @property
    def record(self) -> Mapping[str, Any]:
        """Return the one record that was requested.

        Raises:
            PageRefused: the response is a list, because the URL of the page has a word like ``list`` instead of an id.
        """
        if not isinstance(self.value, dict):
            raise PageRefused(404, "Not found", "There is nothing under this address.")
        return self.value

    @property
    def total(self) -> int:
        """Return the number of records of the whole list."""
        return int(self.headers["x-total-count"])

    @property
    def counted(self) -> int | None:
        """Return `total`; None for a list that is too long to be counted."""
        text = self.headers.get("x-total-count")
        return None if text is None else int(text)

    @property
    def next_cursor(self) -> str:
        """Return the cursor of the next page; empty on the last page."""
        match = _NEXT_CURSOR.search(self.headers.get("link", ""))
        return unquote(match[1]) if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request of a signed-in user to a page. ``method`` is GET, HEAD or POST.

    ``form`` has the fields of a POST. ``is_proven``: a page of this session sent the form; otherwise `send` refuses changes.
    ``body`` receives the bytes of a POST that is no form. ``schema_of`` returns the schema of an API body by its name.
    """

    method: str
    names: Mapping[str, str]
    query_items: Sequence[tuple[str, str]]
    headers: RequestHeaders
    session: Session
    address: str
    api: InternalClient
    schema_of: Callable[[str], Schema]
    form: Mapping[str, str] = field(default_factory=dict)
    is_proven: bool = True
    body: Receive = EMPTY_BODY

    @property
    def query(self) -> Mapping[str, str]:
        """Return the parameters of the query. If a parameter occurs several times, its last value counts."""
        return dict(self.query_items)

    def several(self, name: str) -> list[str]:
        """Return all values of a parameter of the query."""
        return [value for one, value in self.query_items if one == name]

    def may(self, scope: str) -> bool:
        """Return whether the key has the permission on the workspace of the URL, or on all workspaces if the URL names none."""
        return self.session.principal.may(scope, as_uuid(self.names.get("workspace", "")))

    async def get(self, *segments: str, **query: str) -> ApiResponse:
        """Return the response of the API at ``/v1/<segments>``.

        Raises:
            PageRefused: the API responds with an error.
        """
        return await parse_response(await self.api.request("GET", *segments, query=query))

    async def count(self, *segments: str) -> int:
        """Return the number of records of a list of the API. The request does not count for the rate limit of the key.

        Raises:
            PageRefused: the API responds with an error.
        """
        response = await self.api.request("GET", *segments, query={"take": "1"}, counted=False)
        return (await parse_response(response)).total

    async def workspace(self) -> Mapping[str, Any]:
        """Return the record of the workspace that the URL names.

        Raises:
            PageRefused: the API responds with an error.
        """
        return (await self.get("workspace", self.names["workspace"])).record

    async def send(
        self,
        method: str,
        *segments: str,
        body: object = None,
        query: Mapping[str, str] | None = None,
        if_match: str = "",
    ) -> ApiResponse:
        """Send a change to the API. ``body`` None: no body. ``if_match`` empty: the change applies to any version.

        Raises:
            PageRefused: the API responds with an error, or the form is from another session.
        """
        if not self.is_proven:
            sentence = "This form is from another session, so nothing was saved. Check it, and send it again."
            raise PageRefused(403, "Not done", sentence)
        headers = {names.CLIENT_ID: CLIENT_ID, **({"If-Match": if_match} if if_match else {})}
        if body is not None:
            headers["Content-Type"] = names.JSON
        content = whole_body(b"" if body is None else encode(body))
        return await parse_response(
            await self.api.request(method, *segments, query=query, headers=headers, body=content)
        )

    def number(self, name: str, *, default: int = 0) -> int:
        """Return an integer of the query; the default for other texts, because users do not type these parameters."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else default


def readable_json(value: object) -> str:
    """Return the value as indented JSON."""
    return msgspec.json.format(encode(value), indent=2).decode()


async def parse_response(response: Response) -> ApiResponse:
    """Read and parse a response of the API.

    Raises:
        PageRefused: the response is an error.
    """
    body = response.body
    if response.parts is not None:
        async with aclosing(response.parts) as parts:
            body = b"".join([part async for part in parts])
    if response.status >= 400:
        raise api_error(response.status, body)
    headers = {name.lower(): value for name, value in response.headers}
    return ApiResponse(value=decode(body) if body else None, headers=headers)


def api_error(status: int, problem: bytes) -> PageRefused:
    """Return an error page with the API's sentence."""
    body = json.loads(problem)
    mistakes = [(str(one["pointer"]), str(one["detail"])) for one in body.get("errors", ())]
    sentence = str(body.get("detail", "The service refused this."))
    title = str(body.get("title", "Refused"))
    return PageRefused(status, title, sentence, code=str(body.get("code", "")), mistakes=mistakes)
