"""What a page is handed for one request, and how it asks the API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import Headers

from workspaced.core.json_body import decode
from workspaced.http.internal_client import InternalClient
from workspaced.http.responses import Response
from workspaced.ui.sessions import Session

_NEXT_CURSOR = re.compile(r'<[^>]*[?&]cursor=([^&>]*)[^>]*>; rel="next"')


class PageRefused(Exception):
    """The API says no: a page with its sentence is shown instead."""

    def __init__(self, status: int, title: str, sentence: str) -> None:
        self.status = status
        self.title = title
        self.sentence = sentence
        super().__init__(sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the API answered: the body's value, and its headers by their names in lower case."""

    value: Any
    headers: Mapping[str, str]

    @property
    def record(self) -> Mapping[str, Any]:
        """The one record that was asked for.

        Raises:
            PageRefused: it is none; the API has fixed words where ids stand, which lead elsewhere.
        """
        if not isinstance(self.value, dict):
            raise PageRefused(404, "Not found", "There is nothing under this address.")
        return self.value

    @property
    def total(self) -> int:
        """How many records there are, of all pages together."""
        return int(self.headers["x-total-count"])

    @property
    def counted(self) -> int | None:
        """As `total`, of a list that may be too long to be counted."""
        text = self.headers.get("x-total-count")
        return None if text is None else int(text)

    @property
    def next_cursor(self) -> str:
        """The cursor of the next page; empty where there is none."""
        match = _NEXT_CURSOR.search(self.headers.get("link", ""))
        return unquote(match[1]) if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request to a page by a caller who is signed in. ``method`` is GET, HEAD or POST."""

    method: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    headers: Headers
    session: Session
    address: str
    api: InternalClient

    async def get(self, *segments: str, **query: str) -> Reply:
        """What the API has under ``/v1/<segments>``.

        Raises:
            PageRefused: it says no.
        """
        return await reply_of(await self.api.request("GET", *segments, query=query))

    async def post(self, *segments: str) -> Reply:
        """What the API answers to a POST without a body.

        Raises:
            PageRefused: it says no.
        """
        return await reply_of(await self.api.request("POST", *segments))

    def number(self, name: str, *, default: int = 0) -> int:
        """A whole number of the query; the default for anything else, since nobody writes these by hand."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else default


async def reply_of(answer: Response) -> Reply:
    """The value of an answer.

    Raises:
        PageRefused: it is a problem.
    """
    body = answer.body
    if answer.parts is not None:
        async with aclosing(answer.parts) as parts:
            body = b"".join([part async for part in parts])
    if answer.status >= 400:
        raise refused(answer.status, body)
    headers = {name.lower(): value for name, value in answer.headers}
    return Reply(value=decode(body) if body else None, headers=headers)


def refused(status: int, problem: bytes) -> PageRefused:
    """The API's problem as a page's sentence."""
    told = json.loads(problem)
    return PageRefused(status, str(told.get("title", "Refused")), str(told.get("detail", "The service says no.")))
