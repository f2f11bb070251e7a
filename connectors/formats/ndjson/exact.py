"""The exact path of NDJSON: one line as a flat record of exact text.

The fast path must give the same result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from connectors.formats.ndjson.repeated_names import NameRepeated, require_unique_names
from ingestd.sdk import require_depth

JsonRecord: TypeAlias = dict[str, str | None]

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_HALF_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


class LineUnreadable(ValueError):
    """The line is no record. The message is the end of a sentence that starts with the line's number."""


def parse_record(line: bytes) -> JsonRecord:
    """Return the record of a line.

    A string becomes its decoded text, a number or boolean its characters in the source, and null becomes None. A nested object
    becomes its fields under dotted names, an array its JSON text as written.

    Raises:
        LineUnreadable: the line is no JSON, no object or not UTF-8, has no fields, repeats a name at any depth, or two of its
            fields flatten to one name.
    """
    record: JsonRecord = {}
    try:
        require_depth(line)
        require_unique_names(line, _add_fields(record, _object(line), ""))
    except NameRepeated as error:
        raise LineUnreadable(str(error)) from None
    except RecursionError:
        raise LineUnreadable("is nested too deeply") from None
    if not record:
        raise LineUnreadable("is an object without any field")
    return record


def _object(text: bytes | msgspec.Raw) -> Mapping[str, msgspec.Raw]:
    try:
        return _OBJECT.decode(text)
    except msgspec.ValidationError:
        raise LineUnreadable("is JSON but not an object") from None
    except msgspec.DecodeError as error:
        half = r"it holds half a surrogate pair, such as \ud800, which is no character"
        raise LineUnreadable(f"is not valid JSON ({half if _HALF_PAIR.search(bytes(text)) else error})") from None
    except UnicodeDecodeError:
        raise LineUnreadable("holds bytes that are not UTF-8") from None


def _add_fields(record: JsonRecord, fields: Mapping[str, msgspec.Raw], prefix: str) -> int:
    """Add the fields of an object, and return how many members it has, with those of the objects in it."""
    members = len(fields)
    for name, raw in fields.items():
        full, text = prefix + name, bytes(raw)
        value: str | None
        match text[:1]:
            case b"{":
                members += _add_fields(record, _object(raw), f"{full}.")
                continue
            case b'"':
                value = _string(raw)
            case b"n":
                value = None
            case _:
                value = _source(text)
        if full in record:
            raise LineUnreadable(f"has two fields with the name {full!r} after nested names are joined by dots")
        record[full] = value
    return members


def _string(raw: msgspec.Raw) -> str:
    try:
        return _TEXT.decode(raw)
    except msgspec.DecodeError as error:
        raise LineUnreadable(f"holds text that can't be decoded ({error})") from None
    except UnicodeDecodeError:
        raise LineUnreadable("holds bytes that are not UTF-8") from None


def _source(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise LineUnreadable("holds bytes that are not UTF-8") from None
