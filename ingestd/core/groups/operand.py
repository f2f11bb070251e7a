"""The texts of records as operands of aggregates: exact numbers and dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal, Inexact
from fractions import Fraction

import polars as pl

from ingestd.core.clock import parse_time
from ingestd.core.groups.specification import Comparison
from ingestd.core.mapping.conversion import fixed_text
from ingestd.core.mapping.number import DECIMALS, read_numbers

SCALE = 10**DECIMALS
MEAN_DIGITS = 15
"""The least number of significant digits of a mean with infinitely many decimals. It also has at least `DECIMALS` decimals."""

EXPECTED = {
    "number": "a number, which has at most 19 digits before and 18 after the point",
    "date": "a date of the form 2026-11-07 or 2026-11-07T12:30:00 without offset (as: date; with offsets: as: instant)",
    "instant": "a time with offset, such as 2026-11-07T12:30:00+01:00 (as: instant; without offsets: as: date)",
}
"""The values that each comparison expects, as the end of a sentence."""

_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""A time with more than six decimals of a second is no match, because the further decimals would not be compared."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ENOUGH = 160
"""Enough digits for each quotient of a sum and a count below 2**63, if the quotient has finitely many decimals."""


def read_operands(texts: pl.Series, compared: Comparison) -> pl.Series:
    """Parse texts as values of a comparison; null if a text is no such value.

    Numbers are multiples of 10**-18 (``pl.Int128``), dates and instants are microseconds (``pl.Int64``).
    """
    match compared:
        case "number":
            return read_numbers(texts).to_physical()
        case "text":
            return texts
        case _:
            read = {
                text: _microseconds(text, with_offset=compared == "instant")
                for text in texts.unique()
                if text is not None
            }
            return texts.replace_strict(read, default=None, return_dtype=pl.Int64)


def _microseconds(text: str, *, with_offset: bool) -> int | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        found = parse_time(text)
    except ValueError:
        return None
    if (found.tzinfo is not None) != with_offset:
        return None
    return (found.replace(tzinfo=found.tzinfo or UTC) - _EPOCH) // _MICROSECOND


def sum_text(scaled: int) -> str:
    """Return a sum as its shortest exact text. ``scaled``: the sum as a multiple of 10**-18."""
    return _shortest(Decimal(scaled).scaleb(-DECIMALS, Context(prec=_ENOUGH)))


def mean_text(scaled: int, count: int, decimals: int | None) -> str:
    """Return the mean of ``count`` numbers as text. ``scaled``: their sum as a multiple of 10**-18.

    With ``decimals`` the exact mean is rounded once. Without it, a mean with finitely many decimals is exact, and every other
    mean is rounded to `MEAN_DIGITS` significant digits and at least 18 decimals. A half is rounded away from zero.
    """
    if decimals is not None:
        return fixed_text(Fraction(scaled, count * SCALE), decimals)
    context = Context(prec=_ENOUGH)
    quotient = context.divide(Decimal(scaled), Decimal(count * SCALE))
    if not context.flags[Inexact]:
        return _shortest(quotient)
    needed = max(DECIMALS, MEAN_DIGITS - 1 - quotient.adjusted())
    return fixed_text(Fraction(scaled, count * SCALE), needed).rstrip("0")


def _shortest(value: Decimal) -> str:
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) if value else "0"
