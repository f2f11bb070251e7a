"""A request as a value: everything that one call sends, and how its answer is read. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from ingestd.client.operations import Operation

T = TypeVar("T")

Read: TypeAlias = Callable[[bytes, Mapping[str, str]], T]
"""From the body and the headers of a success to the value; raises `decoding.Unreadable` or what msgspec raises."""

_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[T]):
    """``names`` fill the operation's path; ``url``, if given, takes its place, and gets no API key.

    ``check`` may raise `decoding.Mismatch` about the value that was read. ``body`` may hold a secret and ``url`` a signature, so
    neither is shown.
    """

    operation: Operation
    read: Read[T] = field(repr=False)
    names: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    url: str | None = field(default=None, repr=False)
    query: Mapping[str, str] | None = None
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    check: Callable[[T], None] | None = field(default=None, repr=False)
