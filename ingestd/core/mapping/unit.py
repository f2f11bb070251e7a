"""Conversion of units by exact factors, from the definitions of pint."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import msgspec

_DIGITS_OF_A_DEFINITION = 25
"""A factor with more digits comes from an irrational number, such as pi."""


class UnitError(ValueError):
    """A unit is unknown, or two units can't be converted; the sentence says which."""


class UnitConversion(msgspec.Struct, frozen=True, kw_only=True):
    """``result = value * factor + offset``. ``exact``: the factor is rational by definition."""

    factor: Fraction
    offset: Fraction
    exact: bool


@cache
def unit_conversion(source: str, target: str) -> UnitConversion:
    """Return the conversion between two units, such as ``degF`` and ``degC``.

    Raises:
        UnitError: they can't be converted.
    """
    registry = _registry()
    _check(registry, source)
    _check(registry, target)
    try:
        zero, one = (registry.Quantity(Fraction(value), source).to(target).magnitude for value in (0, 1))
    except Exception as error:
        raise UnitError(f"'{source}' can't be converted to '{target}'. Do both measure the same quantity?") from error
    if not isinstance(zero, int | Fraction) or not isinstance(one, int | Fraction):
        raise UnitError(f"'{source}' can't be converted to '{target}': one of them is logarithmic.")
    factor, offset = Fraction(one) - Fraction(zero), Fraction(zero)
    digits = max(len(str(part)) for part in (factor.numerator, factor.denominator) if part)
    exact = digits <= _DIGITS_OF_A_DEFINITION or _is_power_of_ten(factor)
    return UnitConversion(factor=factor, offset=offset, exact=exact)


def _check(registry: Any, unit: str) -> None:
    try:
        registry.Unit(unit)
    except Exception as error:
        raise UnitError(f"There is no unit '{unit}'.") from error


def _is_power_of_ten(factor: Fraction) -> bool:
    return set(str(factor.numerator * factor.denominator)) <= {"1", "0"}


@cache
def _registry() -> Any:
    import pint  # noqa: PLC0415 - a second of work that most configurations don't need

    return pint.UnitRegistry(non_int_type=Fraction, cache_folder=None)
