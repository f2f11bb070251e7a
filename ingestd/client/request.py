"""A request as a value: what a call sends, and how the response is read. Performs no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from ingestd.client.response import MAX_BODY_BYTES

T = TypeVar("T")

HttpMethod: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Read: TypeAlias = Callable[[bytes, Mapping[str, str]], T]
"""Converts the body and the headers of a success to its value. Raises one of `outcome_parser.CONTENT_ERRORS`."""

NONE: Mapping[str, str] = MappingProxyType({})


class ApiOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of the HTTP API. ``name``: the name of the operation in the service."""

    name: str
    method: HttpMethod
    path: str


class Unaddressable(ValueError):
    """A key can't be a segment of a URL's path, because HTTP clients and proxies resolve dots and drop empty segments."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The key {key!r} can't be addressed in a URL: HTTP clients and proxies read it as a relative path. Give the "
            "entry another key; only a service that announces bulk updates accepts this key."
        )


class Request(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One call of the service.

    ``names``: values of the placeholders in the operation's path. ``check`` raises `ResponseMismatch` if the value does not
    belong to this request. ``max_response_bytes``: the maximum size of a body that is not read in parts.
    ``accepts_unchanged``: a 304 is a success without a value. ``repr`` shows only the operation: bodies hold secrets.
    """

    operation: ApiOperation
    read: Read[T]
    names: Mapping[str, str] = NONE
    query: Mapping[str, str] | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = NONE
    check: Callable[[T], None] | None = None
    max_response_bytes: int = MAX_BODY_BYTES
    accepts_unchanged: bool = False

    def __repr__(self) -> str:
        return f"Request({self.operation.name!r})"

    @property
    def path(self) -> str:
        """The path. Each name is percent-encoded as one segment, also its characters ``/``, ``%`` and ``?``.

        Raises:
            Unaddressable: a name is empty, ``.`` or ``..``.
        """
        for name in self.names.values():
            if name in {"", ".", ".."}:
                raise Unaddressable(name)
        return self.operation.path.format_map({field: quote(name, safe="") for field, name in self.names.items()})
