"""The exact path of NDJSON: one line as a flat record of exact text. The fast path must give the same result.

If an object repeats a name, every decoder keeps only the last value, without an error. So repeated names are searched
separately. The colon after a name follows a quote or white space. So a text has at least one such pair of characters for
each member. If a text has as many pairs as decoded members, it repeats no name. Pairs are counted in a whole block, which
takes less time than decoding. Only a text with more pairs is parsed again, for example if a value starts with a colon.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from connectors.formats.name_limit import NameLimit, NamesTooLong
from ingestd.sdk import require_depth

JsonRecord: TypeAlias = dict[str, str | None]

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_HALF_PAIR = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_SPACES = (b" ", b"\t", b"\n", b"\r")


class LineUnreadable(ValueError):
    """The line is no record. The message is the end of a sentence that starts with the line's number."""


class NameRepeated(ValueError):
    """An object has a name twice. The message is the end of a sentence."""


def parse_record(line: bytes) -> JsonRecord:
    """Return the record of a line.

    A string becomes its decoded text, a number or boolean its characters in the source, and null becomes None. A nested object
    becomes its fields under dotted names, an array its JSON text as written.

    Raises:
        LineUnreadable: the line is no JSON, no object or not UTF-8, has no fields, repeats a name at any depth, two of its
            fields flatten to one name, or its names are too long when they are joined.
    """
    record: JsonRecord = {}
    try:
        require_depth(line)
        require_unique_names(line, _add_fields(record, _object(line), "", NameLimit(lambda: len(line))))
    except (NameRepeated, NamesTooLong) as error:
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


def _add_fields(record: JsonRecord, fields: Mapping[str, msgspec.Raw], prefix: str, limit: NameLimit) -> int:
    """Add the fields of an object. Return the number of its members, with the members of nested objects."""
    members = len(fields)
    limit.add(members * len(prefix))
    for name, raw in fields.items():
        full, text = prefix + name, memoryview(raw)
        value: str | None
        match chr(text[0]):
            case "{":
                members += _add_fields(record, _object(raw), f"{full}.", limit)
                continue
            case '"':
                value = _string(raw)
            case "n":
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


def _source(text: memoryview) -> str:
    try:
        return str(text, "utf-8")
    except UnicodeDecodeError:
        raise LineUnreadable("holds bytes that are not UTF-8") from None


def find_unsure(texts: Sequence[bytes], members: Sequence[int]) -> list[bytes]:
    """Return the texts that may repeat a name. ``members``: the number of decoded members of each, at every depth."""
    if _most_members(b"".join(texts)) == sum(
        members
    ):  # no text has fewer pairs than members, so each text has as many pairs as members
        return []
    return [text for text, count in zip(texts, members, strict=True) if _most_members(text) != count]


def require_unique_names(text: bytes, members: int = -1) -> None:
    """Check that no object in a valid JSON text has a name twice. ``members``: the number of decoded members, if it is known.

    Raises:
        NameRepeated: an object has a name twice.
        RecursionError: the text is nested too deeply.
    """
    if _most_members(text) != members:
        _DECODER.decode(text.decode("utf-8", "replace"))


def _most_members(text: bytes) -> int:
    r"""Return an upper limit for the number of members. ``\":`` does not end a name, unless the name ends with a backslash."""
    # The search for one byte is many times faster than a search for two bytes.
    pairs = text.count(b'":') + sum(text.count(space + b":") for space in _SPACES if space in text)
    return pairs if b"\\" not in text or b'\\\\":' in text else pairs - text.count(b'\\":')


def _refuse_repeated(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NameRepeated(f"names {name!r} twice")
            seen.add(name)
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated, parse_int=str, parse_float=str, strict=False)
