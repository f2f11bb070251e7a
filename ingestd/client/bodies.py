"""Functions for bodies of responses: decode JSON, and check that a response matches its request."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ingestd.core.normal_form import nfc
from ingestd.core.phrases import shortened

T = TypeVar("T")

_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def lenient(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a decoder that reads half of a surrogate pair as U+FFFD, instead of an error.

    Otherwise half of a pair in the label of another sink, or in the message of a rejection, would make a response unreadable.
    """

    def decode_leniently(body: bytes) -> T:
        try:
            return decode(body)
        except msgspec.DecodeError:
            repaired = _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], body)
            if repaired == body:
                raise
            return decode(repaired)

    return decode_leniently


decode_json: Callable[[bytes], Any] = lenient(msgspec.json.decode)


class UnreadableBody(ValueError):
    """The body of a success is HTML, or incomplete JSON, or JSON of an unexpected form."""


class ResponseMismatch(ValueError):
    """The body of a success is readable, but does not match the request."""


class KeyChanged(ResponseMismatch):
    """The service keeps the entry under another key than the sent key, such as the sent key in lower case."""


class ValueChanged(ResponseMismatch):
    """The service shows another value of the entry than the sent value, such as a shortened or a rounded value."""


def check_key(key: str, sent: str) -> None:
    """Compare the key of a response with the sent key, both in NFC, because services normalize keys.

    Raises:
        KeyChanged: the keys differ only in case, compatible forms or surrounding white space.
        ResponseMismatch: the keys differ in other ways.
    """
    if nfc(key) == nfc(sent):
        return
    if _folded(key) == _folded(sent):
        raise KeyChanged(f"The response has '{key}' in the place of '{sent}'.")
    raise ResponseMismatch("It names another key.")


def check_value(value: str | UnsetType | None, sent: str | None) -> None:
    """Compare the value of a response with the sent value. ``value``: UNSET if the response has none.

    Raises:
        ValueChanged: the values differ.
    """
    if value is UNSET or is_same_value(value, sent):
        return
    shown, former = (shortened(one) if one is not None else None for one in (value, sent))
    place = ""
    if shown == former and value is not None and sent is not None:
        at = next((at for at, (one, other) in enumerate(zip(value, sent, strict=False)) if one != other), None)
        place = f" They differ from character {(min(len(value), len(sent)) if at is None else at) + 1} on."
    raise ValueChanged(f"The sent value is {_quoted(former)}, and the response has {_quoted(shown)}.{place}")


def is_same_value(value: str | None, sent: str | None) -> bool:
    """Return whether a value of the service is the sent value, both in NFC, because services may normalize values."""
    return value == sent or (value is not None and sent is not None and nfc(value) == nfc(sent))


def check_count(accounted: int, items: int) -> None:
    """Check that a response accounts for every item of a bulk request.

    Raises:
        ResponseMismatch: the response accounts for more or fewer items.
    """
    if accounted != items:
        raise ResponseMismatch(f"The response accounts for {accounted} of {items} items.")


def check_indexes(indexes: Iterable[int], items: int) -> None:
    """Check that the results of a bulk request name each item once.

    Raises:
        ResponseMismatch: an index is missing, repeated or out of range.
    """
    found = sorted(indexes)
    if found != list(range(items)):
        raise ResponseMismatch(f"The response has results for {len(found)} of {items} items.")


def check_listed(listed: Iterable[str], keys: Sequence[str]) -> None:
    """Check that the response to the creation of a sink lists every key that was sent.

    Raises:
        ResponseMismatch: keys are missing.
    """
    known = {nfc(key) for key in listed}
    if missing := sum(nfc(key) not in known for key in keys):
        raise ResponseMismatch(f"The response lacks {missing} of {len(keys)} entries.")


def _quoted(value: str | None) -> str:
    return "no value" if value is None else f"'{value}'"


def _folded(key: str) -> str:
    """Return the key in a form in which case, compatible characters and surrounding white space make no difference."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold()).strip()
