"""Responses of operations (contract G11, G17)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TypeAlias

import msgspec

from ingestd.wire import names
from workspaced.core.json_body import encode

Headers: TypeAlias = tuple[tuple[str, str], ...]


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response. ``parts``, if set, is the body in pieces instead of ``body``.

    ``written``: how many entries were written, by outcome. A replayed response wrote none.
    """

    status: int
    headers: Headers = ()
    body: bytes = b""
    parts: AsyncGenerator[bytes, None] | None = None
    written: Mapping[str, int] | None = None


def json_response(
    value: object, *, status: int = 200, headers: Headers = (), written: Mapping[str, int] | None = None
) -> Response:
    """Return a response with a JSON body."""
    return Response(
        status=status, headers=(("Content-Type", names.JSON), *headers), body=encode(value), written=written
    )


def streamed(parts: AsyncGenerator[bytes, None], *, headers: Headers = (), media_type: str = names.JSON) -> Response:
    """Return a response that sends its body in pieces."""
    return Response(status=200, headers=(("Content-Type", media_type), *headers), parts=parts)


NO_CONTENT = Response(status=200)
"""The interface document's "200: no content": zero bytes, no Content-Type, and not 204."""


def etag(version: int | str) -> tuple[str, str]:
    """Return a strong entity tag: a number that every change increments (timestamps can be equal), or a digest of bytes."""
    return ("ETag", f'"{version}"')
