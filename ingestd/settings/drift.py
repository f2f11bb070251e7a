"""The setting ``drift`` of a pipeline: a mode, or a mode with an interval and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from ingestd.settings.node import described_value, nearest
from ingestd.settings.notation import Duration
from ingestd.settings.schedule import Every, duration_seconds
from ingestd.settings.validation import problem, validated

Mode: TypeAlias = Literal["report", "repair", "adopt"]
"""What is done about drift: nothing; the mirror's values are sent again; the service's values are taken for the truth."""

RemoveUnexplained: TypeAlias = Literal["keep", "own", "remove"]
"""Which entries that no source explains are removed: none; those that this daemon is known to have written; all of them."""

DAILY = "1d"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPlan:
    """``every`` is None if a sink is read back only on request. ``remove_added``: a repair removes added keys."""

    mode: Mode = "report"
    every: Every | None = None
    remove_added: bool = False


class DriftNotation(BaseModel):
    """Read the pipeline's sink back again and again, and compare."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = Field(
        default="report",
        description="report: tell what differs; repair: send it again; adopt: take the service's value for the truth.",
    )
    every: Duration = Field(
        default=DAILY, description="The time from one reading back to the next, from 1s to 366d.", examples=["1d", "6h"]
    )
    added: Literal["keep", "remove"] = Field(
        default="keep",
        description="What a repair does with keys that somebody else has added; remove only where nobody else may write there.",
    )


DriftInput: TypeAlias = Mode | DriftNotation


def read_drift(found: Any) -> DriftPlan:
    """``report``, ``repair``, ``adopt`` or a mapping; a value of our own passes as it is."""
    if isinstance(found, DriftPlan):
        return found
    if isinstance(found, str) and found in get_args(Mode):
        found = {"mode": found}
    if not isinstance(found, dict):
        hint = nearest(found, get_args(Mode)) if isinstance(found, str) else ""
        raise problem(
            f"Expected report, repair, adopt or {{mode: repair, every: 6h}}, found {described_value(found)}.{hint}"
        )
    notation = validated(DriftNotation, found)
    return DriftPlan(
        mode=notation.mode,
        every=Every(seconds=duration_seconds(notation.every)),
        remove_added=notation.added == "remove",
    )
