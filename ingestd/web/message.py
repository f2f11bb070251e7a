"""A request to the listener and its response, as values."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from urllib.parse import parse_qsl

import msgspec

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

_FIELDS = 100
"""The maximum number of fields of a query or a form."""


class WebRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A complete request. ``path`` and ``query`` are still percent-encoded; names of ``headers`` are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""

    @property
    def parameters(self) -> dict[str, str]:
        """The fields of the query. If a name is repeated, the last field counts.

        Raises:
            ValueError: there are too many fields, or a field has a NUL character, which no name of a file may have.
        """
        return _fields(self.query)

    @property
    def form(self) -> dict[str, str]:
        """The fields of a submitted form. If a name is repeated, the last field counts.

        Raises:
            ValueError: see `parameters`; or the body is no form.
        """
        if self.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            raise ValueError("the body is no form")
        return _fields(self.body.decode("ascii"))


def _fields(encoded: str) -> dict[str, str]:
    found = dict(parse_qsl(encoded, keep_blank_values=True, max_num_fields=_FIELDS, errors="strict"))
    if any("\0" in text for text in found.values()):
        raise ValueError("a field has a NUL character")
    return found


class WebResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response. ``stream`` returns a body of unknown length, which is sent instead of ``body``."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    stream: Callable[[], AsyncGenerator[bytes, None]] | None = None


def text_response(status: int, sentence: str, *headers: tuple[str, str]) -> WebResponse:
    """Return a sentence as a response."""
    return WebResponse(status=status, body=f"{sentence}\n".encode(), headers=headers)


def json_response(status: int, value: object) -> WebResponse:
    """Return a value as JSON."""
    return WebResponse(status=status, body=msgspec.json.encode(value) + b"\n", content_type=JSON)
