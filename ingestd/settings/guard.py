"""The setting ``guard`` of a pipeline: the limits beyond which a run is held."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.settings.node import described_value
from ingestd.settings.part import SettingsPart
from ingestd.settings.validation import problem, validated

Percent = Annotated[float, Field(ge=0, le=100)]


class GuardNotation(SettingsPart):
    """Hold a run with one of these effects until `ingestd approve` or `ingestd discard`."""

    removed: Percent | None = Field(
        default=DEFAULT_GUARD.removed_percent,
        description="Percent of the entries; a run that removes at least this share is held. null: no limit.",
        examples=[10],
    )
    changed: Percent | None = Field(
        default=DEFAULT_GUARD.changed_percent,
        description="Percent of the entries; a run that changes at least this share is held. Default: no limit.",
        examples=[30],
    )
    factors: Percent | None = Field(
        default=DEFAULT_GUARD.factors_percent,
        description="Percent of the entries with a number, or of the numbers that a run changes. A run that multiplies at "
        "least this share by the same factor is held if the factor converts between two units, changes the sign, or is a power "
        "of ten. null: no limit.",
    )
    minimum: int = Field(
        default=DEFAULT_GUARD.minimum,
        ge=1,
        description=(
            "The minimum number of entries, entries with a number, or changed numbers. With fewer, a percentage does not"
            " apply."
        ),
    )
    empty: bool = Field(default=DEFAULT_GUARD.empty, description="Hold a reading without any record.")
    types: bool = Field(default=DEFAULT_GUARD.types, description="Hold a run that changes the data type of an entry.")


GuardInput: TypeAlias = GuardNotation | Literal["off"]


def read_guard(found: Any) -> Guard:
    """Return the guard that ``off`` or a mapping describes; a `Guard` is returned unchanged."""
    if isinstance(found, Guard):
        return found
    if found == "off" or found is False:  # YAML 1.1 reads off as a boolean
        return Guard()
    if not isinstance(found, dict):
        raise problem(f"Expected {{removed: 10, changed: 30}} or off, found {described_value(found)}.")
    notation = validated(GuardNotation, found)
    return Guard(
        removed_percent=notation.removed,
        changed_percent=notation.changed,
        factors_percent=notation.factors,
        minimum=notation.minimum,
        empty=notation.empty,
        types=notation.types,
    )
