"""GET /openapi.json and GET /docs (contract G23): generated on the first request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from workspaced.core.json_body import encode
from workspaced.core.json_schema import OBJECT, STRING, Schema
from workspaced.http.description import Success
from workspaced.http.openapi.pages import ReferencePage, policy
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Headers, Response, etag

_FRESH_SECONDS = 300


class Publication:
    """The document and its reference page. ``build`` generates the document, and is called once."""

    def __init__(self, build: Callable[[], dict[str, Any]]) -> None:
        self._build = build

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return self._build()

    def schema_of(self, name: str) -> Schema:
        """Return a schema of the document's components."""
        schema: Schema = self.document["components"]["schemas"][name]
        return schema

    def operations(self, *, pages: bool) -> tuple[Operation, ...]:
        """Return the operations; ``pages``: including /docs."""
        document = Operation(
            name="openapi.document",
            method="GET",
            path="/openapi.json",
            scope=None,
            read=self._json,
            success=Success(OBJECT),
            etag=True,
        )
        reference = Operation(
            name="openapi.pages",
            method="GET",
            path="/docs",
            scope=None,
            read=self._page,
            success=Success(STRING, media="text/html"),
            etag=True,
        )
        return (document, reference) if pages else (document,)

    @cached_property
    def _encoded(self) -> bytes:
        return encode(self.document)

    @cached_property
    def _rendered(self) -> tuple[bytes, str]:
        reference = ReferencePage(self.document)
        return reference.html.encode(), policy(reference.style)

    async def _json(self, call: Call) -> Response:
        """Get this description.

        The OpenAPI 3.1 document, with what is sent to webhooks.
        200: The document.
        """
        return _cacheable(call, self._encoded, "application/json")

    async def _page(self, call: Call) -> Response:
        """Read this description.

        The same as HTML.
        200: The page.
        """
        page, security = self._rendered
        headers = (("Content-Security-Policy", security), ("Referrer-Policy", "no-referrer"))
        return _cacheable(call, page, "text/html; charset=utf-8", *headers)


def _cacheable(call: Call, body: bytes, media: str, *headers: tuple[str, str]) -> Response:
    digest = hashlib.sha256(body).hexdigest()[:32]
    kept: Headers = (etag(digest), ("Cache-Control", f"public, max-age={_FRESH_SECONDS}"))
    if call.has_seen(digest):
        return Response(status=304, headers=kept)
    typed: Headers = (("Content-Type", media), ("X-Content-Type-Options", "nosniff"))
    return Response(status=200, headers=(*typed, *kept, *headers), body=body)


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is committed to git: indented, with a final newline."""
    return msgspec.json.format(encode(document), indent=2).decode() + "\n"
