"""The field that orders the changes of records. Its time or number is compared exactly, and requested in the same form."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

import msgspec

from ingestd.sdk import parse_time

Rank: TypeAlias = tuple[Decimal, str]
"""A comparable value: the seconds since the epoch, or the number; and its kind, ``time`` or ``number``."""

_NUMBER = re.compile(r"-?\d{1,30}(\.\d{1,30})?")
_FRACTION = re.compile(r"[.,](\d+)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NoRank(ValueError):
    """The text is neither a time nor a number. The message is the end of a sentence about the record."""


class ChangeMark(msgspec.Struct, frozen=True):
    """The value of the field that orders a record's changes, as the service wrote it, and its rank."""

    text: str
    rank: Rank


def read_change(text: str | None) -> ChangeMark:
    """Return the change mark of a text: an ISO 8601 time or date (without a zone: UTC), or a decimal number.

    A fraction of a second keeps all its digits, even more than six.

    Raises:
        NoRank: the value is neither a time nor a number.
    """
    if text is None or not text.strip():
        raise NoRank("has no value")
    shown = text.strip()
    if _NUMBER.fullmatch(shown):
        return ChangeMark(shown, (Decimal(shown), "number"))
    try:
        at = parse_time(shown)
    except ValueError:
        raise NoRank(f"has the value {shown[:60]!r}, which is neither a time as in ISO 8601 nor a number") from None
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    seconds = Decimal((aware.replace(microsecond=0) - _EPOCH) // timedelta(seconds=1))
    fraction = _FRACTION.search(shown)
    return ChangeMark(shown, (seconds + (Decimal(f"0.{fraction[1]}") if fraction else 0), "time"))


def back(text: str, overlap: float) -> str:
    """Return ``text`` minus ``overlap`` (seconds, or a number), in the form of ``text``. From a date, subtract whole days."""
    if not overlap:
        return text
    change = read_change(text)
    if change.rank[1] == "number":
        return format(change.rank[0] - Decimal(str(overlap)), "f")
    if _DATE.fullmatch(text):
        return (date.fromisoformat(text) - timedelta(days=-(-int(overlap) // 86_400) or 1)).isoformat()
    earlier = (datetime.fromisoformat(text) - timedelta(seconds=overlap)).isoformat()
    return f"{earlier.removesuffix('+00:00')}Z" if text.endswith(("Z", "z")) else earlier
