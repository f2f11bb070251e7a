"""Conversions of a value. Each conversion returns the exact result, or rejects the record with a sentence.

The order is fixed: trim, missing, case, one_of, pattern, then the number (decimal, unit, range, digits or decimals) or the
date, then pad. A value that no rule changes keeps its characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from ingestd.core.clock import parse_time
from ingestd.core.mapping.number import decimal_of
from ingestd.core.mapping.unit import UnitError, unit_conversion
from ingestd.core.phrases import shortened

_SIZE_AT_MOST = 400
"""The maximum number of characters of a number, and of digits before or after its point."""


_FURTHER_DIGITS = re.compile(r".{10}[^+-]*[.,][0-9]{6}([0-9]*[1-9])", re.DOTALL)
"""The decimals of an ISO 8601 time after the sixth decimal of its seconds. `datetime` can't hold these decimals."""


class ValueRefused(ValueError):
    """A value that the rules don't allow; the sentence states why."""


class UnitRule(msgspec.Struct, frozen=True, kw_only=True):
    """The unit of the source (a template), and the unit of the entry."""

    source: str
    target: str


class DateRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule for a date.

    ``form``: a format for `datetime.strptime` without ``%Z``, or ``iso``. ``timezone``: the time zone of dates without an
    offset. ``target``: the time zone of the result.
    """

    form: str
    timezone: str | None = None
    target: str | None = None


class PadRule(msgspec.Struct, frozen=True, kw_only=True):
    """Fill a shorter value with a character."""

    width: int
    fill: str = "0"
    side: Literal["left", "right"] = "left"


class ValueRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for the values of an entry mapping. A rule that is not set changes nothing."""

    trim: bool = False
    missing: tuple[str, ...] = ()
    case: Literal["upper", "lower"] | None = None
    one_of: tuple[tuple[str, str], ...] = ()
    pattern: str | None = None
    decimal: Literal[".", ","] | None = None
    group: str = ""
    unit: UnitRule | None = None
    minimum: str | None = None
    maximum: str | None = None
    digits: int | None = None
    decimals: int | None = None
    date: DateRule | None = None
    pad: PadRule | None = None

    def convert(self, text: str, unit: str | None = None) -> str | None:
        """Return the converted value; None if it is marked as missing. ``unit``: the unit of the source.

        Raises:
            ValueRefused: a rule doesn't allow the value.
        """
        text = text.strip() if self.trim else text
        if text in self.missing:
            return None
        if self.case is not None:
            text = text.upper() if self.case == "upper" else text.lower()
        if self.one_of:
            text = _choose(text, dict(self.one_of))
        if self.pattern is not None and not re.fullmatch(self.pattern, text):
            raise ValueRefused(f"'{shortened(text)}' does not match the pattern '{self.pattern}'.")
        if self._is_number:
            text = self._number(text, unit)
        if self.date is not None:
            text = _date(text, self.date)
        if self.pad is not None:
            width, fill = self.pad.width, self.pad.fill
            text = text.rjust(width, fill) if self.pad.side == "left" else text.ljust(width, fill)
        return text

    @property
    def _is_number(self) -> bool:
        rules = (self.decimal, self.unit, self.minimum, self.maximum, self.digits, self.decimals)
        return any(rule is not None for rule in rules)

    def _number(self, text: str, unit: str | None) -> str:
        plain = _without_groups(text, self.decimal or ".", self.group)
        value = None if plain is None or len(plain) > _SIZE_AT_MOST else decimal_of(plain)
        if plain is None or value is None or not -_SIZE_AT_MOST <= value.adjusted() <= _SIZE_AT_MOST:
            comma = " with a decimal comma" if self.decimal == "," else ""
            raise ValueRefused(f"'{shortened(text)}' is no number{comma}.")
        exact = Fraction(value)
        if self.unit is not None:
            exact, plain = self._converted(exact, unit or ""), ""
        shown = f" {self.unit.target}" if self.unit is not None else ""
        if self.minimum is not None and exact < Fraction(self.minimum):
            raise ValueRefused(f"'{shortened(text)}' is less than the minimum, {self.minimum}{shown}.")
        if self.maximum is not None and exact > Fraction(self.maximum):
            raise ValueRefused(f"'{shortened(text)}' is more than the maximum, {self.maximum}{shown}.")
        if self.decimals is not None:
            return fixed_text(exact, self.decimals)
        if self.digits is not None:
            rounded = _significant(exact, self.digits)
            return plain if plain and rounded == exact else _plain(rounded, text)
        return plain or _plain(exact, text)

    def _converted(self, value: Fraction, unit: str) -> Fraction:
        assert self.unit is not None  # noqa: S101 - its only caller checks it
        try:
            conversion = unit_conversion(unit, self.unit.target)
        except UnitError as error:
            raise ValueRefused(str(error)) from None
        if not conversion.exact and self.digits is None and self.decimals is None:
            raise ValueRefused(
                f"The factor from '{unit}' to '{self.unit.target}' is not exact; set 'digits' or 'decimals' to round."
            )
        return value * conversion.factor + conversion.offset


def _choose(text: str, allowed: Mapping[str, str]) -> str:
    if text not in allowed:
        shown = ", ".join(f"'{value}'" for value in list(allowed)[:12])
        raise ValueRefused(f"'{shortened(text)}' is none of {shown}{' and others' if len(allowed) > 12 else ''}.")
    return allowed[text]


def _without_groups(text: str, point: str, group: str) -> str | None:
    """Return the text of a number with a decimal point and without thousands separators; None if it can't be a number.

    The first group must not begin with a zero, because the separator in 0.500 is probably a decimal mark.
    """
    if group and group in text:
        whole, mark, rest = text.partition(point)
        if not re.fullmatch(rf"[+-]?[1-9][0-9]{{0,2}}(?:{re.escape(group)}[0-9]{{3}})+", whole) or group in rest:
            return None
        text = whole.replace(group, "") + mark + rest
    if point == ",":
        return None if "." in text else text.replace(",", ".", 1)
    return text


def fixed_text(value: Fraction, decimals: int) -> str:
    """Return a number with exactly this number of decimals; a half is rounded away from zero."""
    digits = str(_rounded(abs(value) * 10**decimals)).rjust(decimals + 1, "0")
    sign = "-" if value < 0 and digits.strip("0") else ""
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}" if decimals else f"{sign}{digits}"


def _significant(value: Fraction, digits: int) -> Fraction:
    """Return a number rounded to this number of significant digits; a half is rounded away from zero."""
    if not value:
        return value
    size = abs(value)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    while size >= Fraction(10) ** (exponent + 1):
        exponent += 1
    while size < Fraction(10) ** exponent:
        exponent -= 1
    step = Fraction(10) ** (exponent - digits + 1)
    result = _rounded(size / step) * step
    return -result if value < 0 else result


def _rounded(value: Fraction) -> int:
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def _plain(value: Fraction, text: str) -> str:
    """Return a number as its shortest text without exponent.

    Raises:
        ValueRefused: the number has infinitely many decimals.
    """
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        raise ValueRefused(
            f"'{shortened(text)}' has no exact result in the other unit; set 'digits' or 'decimals' to round."
        )
    return fixed_text(value, max(twos, fives))


def _date(text: str, rule: DateRule) -> str:
    try:
        found = parse_time(text) if rule.form == "iso" else datetime.strptime(text, rule.form)  # noqa: DTZ007
    except ValueError:
        raise ValueRefused(f"'{shortened(text)}' is no date of the form '{rule.form}'.") from None
    if found.tzinfo is None and rule.timezone is not None:
        found = _local(found, ZoneInfo(rule.timezone), text)
    if rule.target is not None and found.tzinfo is not None:
        found = found.astimezone(UTC if rule.target == "UTC" else ZoneInfo(rule.target))
    if found.tzinfo is None and not _has_time(text, rule.form):
        return found.date().isoformat()
    if rule.form == "iso" and (further := _FURTHER_DIGITS.match(text)) is not None:
        shown = found.isoformat(timespec="microseconds")
        end = len("2026-01-02T10:00:00.123456")
        return f"{shown[:end]}{further[1]}{shown[end:]}"
    return found.isoformat()


def _has_time(text: str, form: str) -> bool:
    return len(text) > len("2026-01-02") if form == "iso" else re.search(r"%[HMISfpcXT]", form) is not None


def _local(found: datetime, zone: ZoneInfo, text: str) -> datetime:
    """Return a local time with its offset.

    Raises:
        ValueRefused: the time occurred twice or never, because the clocks were changed.
    """
    first, second = found.replace(tzinfo=zone, fold=0), found.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset():
        return first
    exists = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == found
    problem = "occurred twice" if exists else "did not occur"
    raise ValueRefused(
        f"'{shortened(text)}' {problem} in {zone.key}, because the clocks were changed. Add the offset to the source."
    )
