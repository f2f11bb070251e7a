"""The rule that holds a run with an effect that is probably a mistake of its source."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import polars as pl

from ingestd.core.phrases import counted
from ingestd.core.record import Deletes

FACTORS: Mapping[str, float] = {
    "1000": 1000.0,
    "1/1000": 1 / 1000,
    "25.4": 25.4,
    "1/25.4": 1 / 25.4,
    "2.2046": 2.20462262,
    "1/2.2046": 1 / 2.20462262,
}
"""Ratios of a new value to the former one that suggest another unit: prefixes, inches, pounds."""

TOLERANCE = 0.01
"""Relative distance to a factor that still counts as near, because converted values are rounded."""

MIN_VALUES = 10
"""Minimum number of values near one factor. A few values may have such a ratio without a mistake."""


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a pipeline's runs. None or False switches a check off.

    ``removed_percent`` and ``changed_percent`` relate to the entries that the partition had before the run. They apply if
    these are at least ``minimum``. ``empty``: a reading without any record. ``factors``: most changed numbers are near one of
    `FACTORS`. ``types``: an entry changes its data type.
    """

    removed_percent: float | None = None
    changed_percent: float | None = None
    empty: bool = False
    factors: bool = False
    types: bool = False
    minimum: int = 20

    def covers(self, deletes: Deletes) -> bool:
        """Return True if a run of a partition with this ``deletes`` can be held."""
        checks_values = self.changed_percent is not None or self.empty or self.factors or self.types
        return checks_values or (deletes == "remove" and self.removed_percent is not None)


DEFAULT_GUARD = Guard(removed_percent=50, minimum=100)
"""The guard of a pipeline without the setting."""


class RunEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The number of entries that a run would change.

    ``before``: entries of the partition before the run. ``retyped``: updates with another data type. ``numeric``: updates from
    one number to another, and ``near`` those of them near each factor. ``empty``: the reading had no record.
    """

    before: int
    created: int
    updated: int
    removed: int
    retyped: int = 0
    numeric: int = 0
    near: Mapping[str, int] = msgspec.field(default_factory=dict)
    empty: bool = False

    @property
    def changed(self) -> bool:
        """True if the run would change an entry."""
        return bool(self.created or self.updated or self.removed)


def hold_reasons(guard: Guard, effect: RunEffect) -> tuple[str, ...]:
    """Return why a run with this effect is held, a sentence for each limit; empty if it passes."""
    reasons = []
    if guard.empty and effect.empty and effect.before:
        reasons.append(f"It read no record; the reading before it had {counted(effect.before, 'entry')}.")
    for verb, count, limit in (
        ("removes", effect.removed, guard.removed_percent),
        ("changes", effect.updated, guard.changed_percent),
    ):
        if limit is not None and effect.before >= guard.minimum and count * 100 > limit * effect.before:
            share = f"{count * 100 / effect.before:.1f}"
            reasons.append(
                f"It {verb} {count} of {counted(effect.before, 'entry')} ({share} %); the limit is {limit:g} %."
            )
    if guard.factors:
        reasons += [
            f"It multiplies {count} of {effect.numeric} changed numbers by about {factor}, as another unit does."
            for factor, count in effect.near.items()
            if count >= MIN_VALUES and count * 2 > effect.numeric
        ]
    if guard.types and effect.retyped:
        reasons.append(f"It changes the data type of {counted(effect.retyped, 'entry')}.")
    return tuple(reasons)


def count_near_factors(former: pl.Series, new: pl.Series) -> tuple[int, dict[str, int]]:
    """Return the number of pairs of nonzero finite numbers, and how many of these are near each of `FACTORS`.

    ``former`` and ``new``: values as text, of equal length.
    """
    pairs = pl.DataFrame({"former": former, "new": new}).select(pl.all().cast(pl.Float64, strict=False))
    ratio = pl.col("new") / pl.col("former")
    ratios = pairs.select(ratio.alias("ratio")).filter(pl.col("ratio").is_finite() & (pl.col("ratio") != 0))["ratio"]
    near = {name: int(((ratios / factor - 1).abs() <= TOLERANCE).sum()) for name, factor in FACTORS.items()}
    return ratios.len(), near
