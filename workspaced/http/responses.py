"""What an operation answers (contract G11, G17)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ingestd.wire import names
from workspaced.core.json_body import encode

Headers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete answer. ``parts``, where given, is the body in pieces instead of ``body``.

    ``written``: how many entries were written, by what became of them. A repeated answer wrote none.
    """

    status: int
    headers: Headers = ()
    body: bytes = b""
    parts: AsyncGenerator[bytes, None] | None = None
    written: Mapping[str, int] | None = None


def json_response(
    value: object, *, status: int = 200, headers: Headers = (), written: Mapping[str, int] | None = None
) -> Response:
    """A body in JSON."""
    return Response(
        status=status, headers=(("Content-Type", names.JSON), *headers), body=encode(value), written=written
    )


def streamed(parts: AsyncGenerator[bytes, None], *, headers: Headers = (), media_type: str = names.JSON) -> Response:
    """A body whose pieces come as they are read."""
    return Response(status=200, headers=(("Content-Type", media_type), *headers), parts=parts)


NO_CONTENT = Response(status=200)
"""The document's "200: no content": zero bytes, no type, and not 204."""


def etag(version: int | str) -> tuple[str, str]:
    """A strong validator: a number that every change raises, since instants can be equal; of bytes, their digest."""
    return ("ETag", f'"{version}"')
