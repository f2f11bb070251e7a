"""How answers are read into whole records: one function a form, each made once for each kind of record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from ingestd.client.decoding import Unreadable
from ingestd.client.records.base import Versioned, tag
from ingestd.client.records.sinks import Entry
from ingestd.client.request import Read

T = TypeVar("T")
S = TypeVar("S")
V = TypeVar("V", bound=Versioned)


def one(kind: type[T]) -> Read[T]:
    """A record."""
    decode = msgspec.json.Decoder(kind).decode
    return lambda body, _headers: decode(body)


def versioned(kind: type[V]) -> Read[V]:
    """A record with the version that the answer tells."""
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes, headers: Mapping[str, str]) -> V:
        record = decode(body)
        if etag := headers.get("ETag"):
            tag(record, etag)
        return record

    return read


def many(kind: type[T]) -> Read[tuple[T, ...]]:
    """A list of records."""
    decoder: msgspec.json.Decoder[tuple[T, ...]] = msgspec.json.Decoder(tuple[kind, ...])  # type: ignore[valid-type]
    return lambda body, _headers: decoder.decode(body)


def one_or_many(kind: type[T]) -> Read[tuple[T, ...]]:
    """A list where the document does not show whether it is one; a single record is a list of one."""
    alone, listed = one(kind), many(kind)
    return lambda body, headers: listed(body, headers) if body.lstrip()[:1] == b"[" else (alone(body, headers),)


def mapped(read: Read[S], turn: Callable[[S], T]) -> Read[T]:
    """What another reader gives, turned into something else."""
    return lambda body, headers: turn(read(body, headers))


def created_id(_body: bytes, headers: Mapping[str, str]) -> str | None:
    """The id of what was created, out of Location; None where the service does not tell it."""
    last = headers.get("Location", "").rstrip("/").rpartition("/")[2]
    return unquote(last) or None


def entry_of(members: dict[str, Any]) -> Entry:
    """An entry out of a stream of them.

    Raises:
        Unreadable: it is not what the document says.
    """
    try:
        return msgspec.convert(members, Entry)
    except msgspec.ValidationError:
        raise Unreadable("an entry is not what the document says") from None
