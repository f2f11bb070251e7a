"""The guard: the rule that holds a run if its effect is probably caused by a mistake in its source."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from ingestd.core.phrases import counted, shortened
from ingestd.core.record import Deletes
from ingestd.core.unit_factors import FACTORS, POWER_OF_TEN

EXAMPLES = 3
"""The maximum number of entries that a reason shows."""


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """The limits for a pipeline's runs. A run that reaches a limit is held. None or False disables a check.

    ``removed_percent``, ``changed_percent``: the share of the partition's entries that the run removes or changes.
    ``factors_percent``: the share of nonzero numbers, or of changed numbers, that the run multiplies by one factor. A share is
    checked only if the whole has at least ``minimum`` entries. ``empty``: hold a reading without records. ``types``:
    hold a run that changes the data type of an entry.
    """

    removed_percent: float | None = None
    changed_percent: float | None = None
    factors_percent: float | None = None
    empty: bool = False
    types: bool = False
    minimum: int = 20

    def covers(self, deletes: Deletes) -> bool:
        """Return True if a run of a partition with this ``deletes`` can be held."""
        checks_values = self.empty or self.types or self.changed_percent is not None or self.factors_percent is not None
        return checks_values or (deletes == "remove" and self.removed_percent is not None)


DEFAULT_GUARD = Guard(removed_percent=50, factors_percent=50)
"""The guard of a pipeline without the setting ``guard``, and the value of each limit that this setting omits."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that a run would change, with its values and data types; ``new`` is None if it would be removed."""

    key: str
    old: str | None
    old_type: str
    new: str | None
    new_type: str | None


class RunEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the entries that a run would change.

    ``before``: entries that the partition had before the run, plus entries without a source that the run writes. ``numeric``:
    the entries in ``before`` with a nonzero number. ``renumbered``: updates of a nonzero number to another nonzero number.
    ``near``: by factor, updates that multiply the number by about this factor. ``retyped``: updates that change the data type.
    ``empty``: the reading had no record. ``examples``: the first entries of each kind: removed, changed, retyped, each factor.
    """

    before: int
    created: int
    updated: int
    removed: int
    retyped: int = 0
    numeric: int = 0
    renumbered: int = 0
    near: Mapping[str, int] = msgspec.field(default_factory=dict)
    empty: bool = False
    examples: Mapping[str, tuple[Example, ...]] = msgspec.field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """True if the run would change an entry."""
        return bool(self.created or self.updated or self.removed)


def may_hold(guard: Guard, effect: RunEffect) -> bool:
    """Return whether `hold_reasons` could hold the run. It ignores ``before`` and ``numeric``, which take long to count."""
    least = replace(effect, before=guard.minimum, numeric=guard.minimum)
    return bool(hold_reasons(guard, least))


def hold_reasons(guard: Guard, effect: RunEffect) -> tuple[str, ...]:
    """Return a sentence with examples for each limit that the effect reaches; empty if the run is not held."""
    reasons: list[tuple[str, str]] = []
    if guard.empty and effect.empty and effect.before:
        reasons.append((f"It read no record; the reading before it had {counted(effect.before, 'entry')}.", "removed"))
    for kind, verb, count, limit in (
        ("removed", "removes", effect.removed, guard.removed_percent),
        ("changed", "changes", effect.updated, guard.changed_percent),
    ):
        if _reaches(guard, limit, count, effect.before):
            share = f"{counted(effect.before, 'entry')} ({count * 100 / effect.before:.1f} %)"
            reasons.append((f"It {verb} {count} of {share}; the limit is {limit:g} %.", kind))
    reasons += _factor_reason(guard, effect)
    if guard.types and effect.retyped:
        reasons.append((f"It changes the data type of {counted(effect.retyped, 'entry')}.", "retyped"))
    return _with_examples(reasons, effect)


def _factor_reason(guard: Guard, effect: RunEffect) -> list[tuple[str, str]]:
    factor = max(effect.near, key=effect.near.__getitem__, default="")
    count = effect.near.get(factor, 0)
    # A mistake in one column may affect a small share of all numbers, but a large share of the changed numbers.
    for total, noun in ((effect.numeric, "number"), (effect.renumbered, "changed number")):
        if _reaches(guard, guard.factors_percent, count, total):
            meaning = FACTORS[factor.removeprefix("1/")][1] if factor != POWER_OF_TEN else ""
            by = f"about {factor} ({meaning})" if meaning else f"{factor} (another prefix, or a lost decimal separator)"
            share = f"{counted(total, noun)} ({count * 100 / total:.1f} %)"
            return [(f"It multiplies {count} of {share} by {by}; the limit is {guard.factors_percent:g} %.", factor)]
    return []


def _reaches(guard: Guard, limit: float | None, count: int, total: int) -> bool:
    return limit is not None and total >= guard.minimum and count > 0 and count * 100 >= limit * total


def _with_examples(reasons: list[tuple[str, str]], effect: RunEffect) -> tuple[str, ...]:
    """Append the examples of each reason, unless the previous reason has the same examples."""
    sentences, shown = [], ""
    for sentence, kind in reasons:
        examples = ", ".join(_described(one, types=kind == "retyped") for one in effect.examples.get(kind, ()))
        sentences.append(f"{sentence} For example {examples}." if examples and examples != shown else sentence)
        shown = examples
    return tuple(sentences)


def _described(example: Example, *, types: bool) -> str:
    key, old, new = (
        shortened(text if text is not None else "null") for text in (example.key, example.old, example.new)
    )
    if example.new_type is None:
        return f"'{key}' ({old})"
    return (
        f"'{key}' from {old} ({example.old_type}) to {new} ({example.new_type})"
        if types
        else f"'{key}' from {old} to {new}"
    )
