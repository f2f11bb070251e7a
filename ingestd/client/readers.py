"""Functions that convert the body of a successful response to a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin
from urllib.parse import unquote

import msgspec

from ingestd.client.bodies import decode_json, lenient
from ingestd.client.records import BulkResult, EntrySummary, Versioned
from ingestd.client.request import Read

_decode_bulk = lenient(
    msgspec.json.Decoder[BulkResult | tuple[EntrySummary, ...]](BulkResult | tuple[EntrySummary, ...]).decode
)


def reader(kind: Any) -> Read[Any]:
    """Return the function that reads a type: a record, a tuple of records, JSON, or None for an empty body.

    A `Versioned` record gets the response's ETag. Instead of a list, a single record is accepted, too, because the interface
    document permits both.
    """
    if kind in {None, type(None)}:
        return read_nothing
    if get_origin(kind) is tuple:
        return _reader_of_many(kind)
    decode = lenient(msgspec.json.Decoder(kind).decode)

    def read_one(body: bytes, headers: Mapping[str, str]) -> Any:
        record = decode(body)
        if isinstance(record, Versioned) and (etag := headers.get("ETag")):
            record.set_etag(etag)
        return record

    return read_one


def _reader_of_many(kind: Any) -> Read[tuple[Any, ...]]:
    decode = lenient(msgspec.json.Decoder(kind | get_args(kind)[0]).decode)

    def read_many(body: bytes, _headers: Mapping[str, str]) -> tuple[Any, ...]:
        found = decode(body)
        return found if isinstance(found, tuple) else (found,)

    return read_many


def read_nothing(body: bytes, _headers: Mapping[str, str]) -> None:
    """Accept an empty body, or JSON, because a service may return the deleted record.

    HTML is not accepted, because it comes from a proxy.
    """
    if body.strip():
        decode_json(body)


def read_any(body: bytes, _headers: Mapping[str, str]) -> Any:
    """Read JSON of any form; an empty body is None."""
    return decode_json(body) if body.strip() else None


def read_bulk(body: bytes, _headers: Mapping[str, str]) -> BulkResult:
    """Read any form of the response to a bulk update: counts, results by item, or the entries."""
    found = _decode_bulk(body)
    if isinstance(found, tuple):
        return BulkResult(accepted=len(found))
    if found.results is None:
        return BulkResult(accepted=found.accepted or len(found.entries or ()))
    return BulkResult(accepted=sum(result.status < 300 for result in found.results), results=found.results)


def read_created_id(_body: bytes, headers: Mapping[str, str]) -> str | None:
    """Return the id of a created record from the header `Location`; None without this header."""
    last = headers.get("Location", "").rstrip("/").rpartition("/")[2]
    return unquote(last) or None
