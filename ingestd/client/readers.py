"""Functions that read the body of a success into a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from ingestd.client.checks import UnreadableBody
from ingestd.client.json_bodies import decode_json, lenient
from ingestd.client.records.base import Versioned, tag
from ingestd.client.records.sinks import Entry
from ingestd.client.records.summaries import BulkResult, BulkSummary, EntrySummary
from ingestd.client.request import Read

T = TypeVar("T")

_decode_bulk = lenient(
    msgspec.json.Decoder[BulkSummary | tuple[EntrySummary, ...]](BulkSummary | tuple[EntrySummary, ...]).decode
)


def reader(kind: Any) -> Read[Any]:
    """Return the function that reads a type: a record, a tuple of records, or None for an empty body.

    A `Versioned` record keeps the response's ETag.
    """
    if kind in {None, type(None)}:
        return read_nothing
    decode = lenient(msgspec.json.Decoder(kind).decode)
    if not (isinstance(kind, type) and issubclass(kind, Versioned)):
        return lambda body, _headers: decode(body)

    def read_versioned(body: bytes, headers: Mapping[str, str]) -> Any:
        record = decode(body)
        if etag := headers.get("ETag"):
            tag(record, etag)
        return record

    return read_versioned


def one_or_many(kind: type[T]) -> Read[tuple[T, ...]]:
    """Return the function that reads a list, or one record as a list of one: the interface document allows both."""
    decode = lenient(msgspec.json.Decoder(kind | tuple[kind, ...]).decode)  # type: ignore[valid-type]

    def read_list(body: bytes, _headers: Mapping[str, str]) -> tuple[T, ...]:
        found = decode(body)
        return found if isinstance(found, tuple) else (found,)

    return read_list


def read_nothing(body: bytes, _headers: Mapping[str, str]) -> None:
    """Accept an empty body, or JSON: a service may return the record that it deleted. HTML comes from a proxy."""
    if body.strip():
        decode_json(body)


def read_bulk(body: bytes, _headers: Mapping[str, str]) -> BulkResult:
    """Read any form of the response to a bulk update: counts, results by item, or the entries.

    Raises:
        UnreadableBody: it is none of them.
    """
    found = _decode_bulk(body)
    if isinstance(found, tuple):
        return BulkResult(accepted=len(found))
    if found.results is not None:
        return BulkResult(accepted=sum(result.status < 300 for result in found.results), results=found.results)
    if found.accepted is not None:
        return BulkResult(accepted=found.accepted)
    if found.entries is not None:
        return BulkResult(accepted=len(found.entries))
    raise UnreadableBody("neither counts nor entries nor results")


def read_created_id(_body: bytes, headers: Mapping[str, str]) -> str | None:
    """Return the id of a created record from the header `Location`; None without this header."""
    last = headers.get("Location", "").rstrip("/").rpartition("/")[2]
    return unquote(last) or None


def entry_of(members: dict[str, Any]) -> Entry:
    """Return the record of a decoded entry.

    Raises:
        UnreadableBody: a member is missing or of another type.
    """
    try:
        return msgspec.convert(members, Entry)
    except msgspec.ValidationError:
        raise UnreadableBody("an entry is not what the document says") from None
