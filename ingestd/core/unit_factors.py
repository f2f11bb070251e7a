"""Factors by which a mistake in a source multiplies numbers: factors between units, a changed sign, and decimal shifts."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

POWER_OF_TEN = "a power of ten"
"""The name of all powers of ten except 1, counted together: a lost decimal separator shifts each value by its own decimals."""

FACTORS: Mapping[str, tuple[float, str]] = {
    "-1": (-1.0, "the sign"),
    "1.8": (1.8, "kelvins and degrees Rankine"),
    "2.2046": (2.20462262, "kilograms and pounds"),
    "28.35": (28.3495231, "ounces and grams"),
    "453.59": (453.59237, "pounds and grams"),
    "2.54": (2.54, "inches and centimetres"),
    "25.4": (25.4, "inches and millimetres"),
    "3.2808": (3.2808399, "metres and feet"),
    "304.8": (304.8, "feet and millimetres"),
    "12": (12.0, "feet and inches"),
    "1.6093": (1.609344, "miles and kilometres"),
    "1.852": (1.852, "nautical miles and kilometres"),
    "4.4482": (4.44822162, "pounds-force and newtons"),
    "9.8067": (9.80665, "kilograms-force and newtons"),
    "1.3558": (1.35581795, "foot-pounds and newton metres"),
    "6.8948": (6.89475729, "psi and kilopascals"),
    "14.504": (14.5037738, "bars and psi"),
    "3.6": (3.6, "metres per second and kilometres per hour, or megajoules and kilowatt-hours"),
    "60": (60.0, "minutes and seconds"),
    "3600": (3600.0, "hours and seconds"),
    "4.184": (4.184, "calories and joules"),
    "6.2832": (6.28318531, "turns and radians"),
    "57.296": (57.2957795, "radians and degrees"),
}
"""Factors with the units between which they convert. Divisions by them count, too. ADR 0029 lists the omitted factors."""

TOLERANCE = 0.01
"""The relative distance to a factor that counts as near, because converted values are rounded."""


def as_numbers(values: pl.Series) -> pl.Series:
    """Parse texts as nonzero finite numbers (Float64); null for all other texts."""
    numbers = values.cast(pl.Float64, strict=False)
    return numbers.set(~(numbers.is_finite() & (numbers != 0)), None)


def find_near_factors(ratio: pl.Series) -> dict[str, pl.Series]:
    """Return, for each factor with a near ratio, whether each ratio is near the factor (Boolean).

    ``ratio``: new number divided by former number (Float64); null if one of them is not a nonzero number.
    """
    if not ratio.len() - ratio.null_count():
        return {}
    exponent = ratio.log10().round()  # NaN for a negative ratio, which is near no power of ten
    shift = (ratio / 10.0**exponent - 1).abs()
    near = {POWER_OF_TEN: (shift <= TOLERANCE) & shift.is_not_nan() & (exponent != 0)}
    for name, (factor, _) in FACTORS.items():
        near[name] = (ratio / factor - 1).abs() <= TOLERANCE
        if factor != -1:
            near[f"1/{name}"] = (ratio * factor - 1).abs() <= TOLERANCE
    return {name: found for name, mask in near.items() if (found := mask.fill_null(value=False)).any()}
