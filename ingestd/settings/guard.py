"""The setting ``guard`` of a pipeline: the limits beyond which a run is held."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ingestd.core.guard import Guard
from ingestd.settings.node import described_value
from ingestd.settings.validation import problem, validated

Percent = Annotated[float, Field(ge=0, le=100)]


class GuardNotation(BaseModel):
    """Hold a run with one of these effects until `ingestd approve` or `ingestd discard`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    removed: Percent | None = Field(
        default=50, description="Percent of the entries that a run may remove. null: any.", examples=[10]
    )
    changed: Percent | None = Field(
        default=None, description="Percent of the entries that a run may change. Default: any.", examples=[30]
    )
    minimum: int = Field(
        default=20, ge=1, description="The two shares are checked if the partition had at least this many entries."
    )
    empty: bool = Field(default=True, description="Hold a reading without any record.")
    factors: bool = Field(
        default=True,
        description="Hold a run that multiplies most changed numbers, and at least 10, by about 1000, 25.4 or 2.2046, or divides "
        "them, as a wrong unit does.",
    )
    types: bool = Field(default=True, description="Hold a run that changes the data type of an entry.")


GuardInput: TypeAlias = GuardNotation | Literal["off"]


def read_guard(found: Any) -> Guard:
    """Return the guard of ``off`` or a mapping; a `Guard` is returned unchanged."""
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
        minimum=notation.minimum,
        empty=notation.empty,
        factors=notation.factors,
        types=notation.types,
    )
