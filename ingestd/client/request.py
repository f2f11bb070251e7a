"""A request as a value: what one call sends, and how its response is read. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from ingestd.client.content import Outgoing
from ingestd.client.operations import ApiOperation
from ingestd.client.response import MAX_BODY_BYTES

T = TypeVar("T")

Read: TypeAlias = Callable[[bytes, Mapping[str, str]], T]
"""Converts the body and the headers of a success to its value. Raises one of `faults.CONTENT_ERRORS`."""

_EMPTY: Mapping[str, str] = MappingProxyType({})


class Request(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One call of the service.

    ``path``: values of the names in the operation's path. ``url`` replaces the path, and gets no API key. ``body``: the
    whole body. ``content``: a body that is sent in chunks. ``check`` raises `ResponseMismatch` if the value does not
    belong to this request. ``max_response_bytes``: a longer response is a broken one; responses in chunks have no limit.
    ``repr`` shows the operation only, because bodies and addresses hold secrets.
    """

    operation: ApiOperation
    read: Read[T]
    path: Mapping[str, str] = _EMPTY
    url: str | None = None
    query: Mapping[str, str] | None = None
    body: bytes | None = None
    content: Outgoing | None = None
    headers: Mapping[str, str] = _EMPTY
    check: Callable[[T], None] | None = None
    max_response_bytes: int = MAX_BODY_BYTES

    def __repr__(self) -> str:
        return f"Request({self.operation.name!r})"


class RecordStream(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A response that is read in chunks: ``feed`` returns the records of a chunk, ``finish`` checks the end."""

    request: Request[Any]
    feed: Callable[[bytes], Iterable[T]]
    finish: Callable[[], None]
