"""The setting ``drift`` of a pipeline: a mode, or a mode with an interval and options."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import msgspec
from pydantic import Field

from ingestd.core.phrases import nearest
from ingestd.settings.node import described_value
from ingestd.settings.notation import Duration
from ingestd.settings.part import SettingsPart
from ingestd.settings.schedule import Every, duration_seconds
from ingestd.settings.validation import problem, validated

Mode: TypeAlias = Literal["report", "repair", "adopt"]
"""The reaction to drift: only report it; send the mirror's values again; accept the values of the service."""

RemoveUnexplained: TypeAlias = Literal["keep", "own", "remove"]
"""Which entries without a source are removed: none; those that the mirror records as delivered; all entries."""

DAILY = "1d"


class DriftPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of drift checks. ``every`` None: a sink is read only on request. ``remove_added``: a repair removes added keys."""

    mode: Mode = "report"
    every: Every | None = None
    remove_added: bool = False


class DriftNotation(SettingsPart):
    """Read the pipeline's sink periodically and compare it with the delivered values."""

    mode: Mode = Field(
        default="report",
        description="report: list differences; repair: send the delivered values again; adopt: accept the values of the service.",
    )
    every: Duration = Field(
        default=DAILY, description="The time between two comparisons, from 1s to 366d.", examples=["1d", "6h"]
    )
    added: Literal["keep", "remove"] = Field(
        default="keep",
        description=(
            "The reaction of a repair to keys that other programs or people have added. Set remove only if"
            " nothing else writes to the sink."
        ),
    )


DriftInput: TypeAlias = Mode | DriftNotation


def read_drift(found: Any) -> DriftPlan:
    """Return the plan that a mode or a mapping describes; a `DriftPlan` is returned unchanged."""
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
