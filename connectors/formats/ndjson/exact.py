"""The exact path of NDJSON: one line as a flat record of exact text.

The fast path must give the same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

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
    becomes its fields under dotted names, an array its JSON text as written. Of a repeated name the last value counts.

    Raises:
        LineUnreadable: the line is no JSON, no object or not UTF-8, has no fields, or two of them flatten to one name.
    """
    record: JsonRecord = {}
    try:
        for name, value in _fields(_object(line), ""):
            if name in record:
                raise LineUnreadable(f"has two fields with the name {name!r} after nested names are joined by dots")
            record[name] = value
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


def _fields(fields: Mapping[str, msgspec.Raw], prefix: str) -> Iterator[tuple[str, str | None]]:
    for name, raw in fields.items():
        text = bytes(raw)
        match text[:1]:
            case b"{":
                yield from _fields(_object(raw), f"{prefix}{name}.")
            case b'"':
                yield prefix + name, _string(raw)
            case b"n":
                yield prefix + name, None
            case _:
                yield prefix + name, _source(text)


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
