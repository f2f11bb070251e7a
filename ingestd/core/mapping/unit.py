"""Conversion of units by exact factors, from the definitions of pint."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from ingestd.core.phrases import shortened

_LARGEST_OF_A_DEFINITION = 10**25
"""A factor with a larger numerator or denominator comes from an irrational number, such as pi, or is a power of ten."""
_CHARACTERS = 100
_LARGEST_POWER = 12
_HARMLESS = re.compile(
    r"""\*\*(?:\([+-]?[0-9.]{1,5}(?:/[0-9.]{1,5})?\)|[+-]?[0-9.]{1,5})(?![\w.]|\*\*)  # a power that is a short number
    | (?<![\w.])[^\W\d]\w*                                                            # a name
    | (?<![\w.])1(?:\.0*)?(?![\w.])                                                    # the 1 of 1/s""",
    re.VERBOSE,
)
"""The permitted parts of a unit. Other numbers are refused, because pint evaluates ``9**9**9``, even from a record."""
_SPACES_AT_SIGNS = re.compile(r"(?<!\w)\s+|\s+(?!\w)")
_RULE = f"A unit has names with powers from -{_LARGEST_POWER} to {_LARGEST_POWER}, such as kg*m**2/s**2, and no other numbers."


_KEPT_TEXTS = 10_000


class UnitError(ValueError):
    """A unit is unknown, or two units can't be converted; the sentence names them."""


class UnitConversion(msgspec.Struct, frozen=True, kw_only=True):
    """The conversion ``result = value * factor + offset``. ``exact``: the factor is rational by definition."""

    factor: Fraction
    offset: Fraction
    exact: bool


@lru_cache(maxsize=1024)
def unit_conversion(source: str, target: str) -> UnitConversion:
    """Return the conversion between two units, such as ``degF`` and ``degC``.

    Raises:
        UnitError: a unit is unknown, or the units can't be converted.
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
    largest = max(abs(factor.numerator), factor.denominator)
    exact = largest < _LARGEST_OF_A_DEFINITION or _is_power_of_ten(factor)
    return UnitConversion(factor=factor, offset=offset, exact=exact)


def _check(registry: Any, unit: str) -> None:
    from pint.util import to_units_container  # noqa: PLC0415 - as in _registry

    if len(unit) > _CHARACTERS:
        raise UnitError(f"There is no unit '{shortened(unit)}': it has more than {_CHARACTERS} characters.")
    try:
        powers: Mapping[str, Any] = to_units_container(registry.Unit(unit))
    except UnitError:
        raise
    except Exception as error:
        raise UnitError(f"There is no unit '{shortened(unit)}'.") from error
    if any(abs(power) > _LARGEST_POWER for power in powers.values()):
        raise UnitError(f"There is no unit '{shortened(unit)}'. {_RULE}")


def _require_short_numbers(unit: str) -> str:
    """Check a text before pint parses it, and return it.

    Raises:
        UnitError: the text has a number that is not a power, or a power that is not a short number.
    """
    from pint.util import string_preprocessor  # noqa: PLC0415 - as in _registry

    rest = _HARMLESS.sub(" ", _SPACES_AT_SIGNS.sub("", string_preprocessor(unit)))
    if "**" in rest or any(map(str.isdigit, rest)):
        raise UnitError(f"There is no unit '{shortened(unit)}'. {_RULE}")
    return unit


def _is_power_of_ten(factor: Fraction) -> bool:
    number = abs(factor.numerator) * factor.denominator
    return bool(number == 10 ** round(math.log10(number)))


def _registry() -> Any:
    """Return pint's registry of units. pint keeps every parsed text in memory, and the text may come from a record.

    So the registry is replaced after every 10,000 conversions that are not cached.
    """
    return _new_registry(unit_conversion.cache_info().misses // _KEPT_TEXTS)


@lru_cache(maxsize=1)
def _new_registry(_turn: int) -> Any:
    import pint  # noqa: PLC0415 - the import takes a second, and most configurations don't need it

    return pint.UnitRegistry(non_int_type=Fraction, cache_folder=None, preprocessors=[_require_short_numbers])
