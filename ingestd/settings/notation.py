"""The short notations of a sink, a schedule and a duration, and the values that they are converted to."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from ingestd.core.address import SinkAddress
from ingestd.core.normal_form import nfc
from ingestd.core.phrases import nearest
from ingestd.settings.cron import check_cron
from ingestd.settings.node import described_value
from ingestd.settings.part import SettingsPart
from ingestd.settings.schedule import Cron, Every, OnChange, Schedule, duration_seconds, known_timezone
from ingestd.settings.validation import Reading, checked_by, problem, validated

ON_CHANGE = "on-change"


def _with_unit(found: Any) -> Any:
    if isinstance(found, int | float) and not isinstance(found, bool):
        raise problem(f"Expected a duration with its unit, such as 15m or 90s; found {described_value(found)}.")
    return found


Duration: TypeAlias = Annotated[
    str,
    BeforeValidator(_with_unit),
    checked_by(duration_seconds),
    Field(json_schema_extra={"pattern": r"^\s*(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?\s*$"}),
]
"""A duration as written in the file; `duration_seconds` parses it."""


class SinkNotation(SettingsPart):
    """A data sink in a workspace, named by exactly one of label, id and visible id."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [name]} for name in ("label", "id", "visible_id")]}
    )

    workspace: str = Field(min_length=1, description="The id or the label of the workspace.")
    label: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="The label of the sink, which is created if it does not exist.",
    )
    id: str | None = Field(default=None, min_length=1, description="The id of an existing sink.")
    visible_id: str | None = Field(
        default=None, validate_default=True, min_length=1, description="The visible id of an existing sink."
    )

    @field_validator("visible_id")
    @classmethod
    def _exactly_one(cls, visible_id: str | None, info: ValidationInfo) -> str | None:
        if "label" in info.data and "id" in info.data:
            given = [name for name in ("label", "id") if info.data[name] is not None]
            given += ["visible_id"] if visible_id is not None else []
            if not given:
                raise problem("A sink needs one of 'label', 'id' and 'visible_id'; found none of them.")
            if len(given) > 1:
                raise problem(
                    f"A sink has one of 'label', 'id' and 'visible_id'; found {' and '.join(given)}. Keep one of them."
                )
        return visible_id

    def address(self) -> SinkAddress:
        """Return the address of the sink. Labels are normalised to NFC, as in the service."""
        workspace = nfc(self.workspace)
        if self.label is not None:
            return SinkAddress(workspace=workspace, by="label", name=nfc(self.label))
        if self.id is not None:
            return SinkAddress(workspace=workspace, by="id", name=self.id)
        return SinkAddress(workspace=workspace, by="visible_id", name=nfc(self.visible_id or ""))


class EveryNotation(SettingsPart):
    """Run at an interval."""

    every: Duration = Field(
        description="The time between the starts of two runs, from 1s to 366d.",
        examples=["15m", "1h30m"],
    )


class CronNotation(SettingsPart):
    """Run at the times of a cron expression."""

    cron: Annotated[str, checked_by(check_cron)] = Field(
        description="Minute, hour, day of the month, month and day of the week (0 and 7 are Sunday), as in crontab.",
        examples=["0 2 * * *", "*/10 6-18 * * mon-fri"],
    )
    timezone: Annotated[str, checked_by(known_timezone)] = Field(
        default="UTC", description="The IANA name of the time zone of the expression.", examples=["Europe/Berlin"]
    )


ScheduleInput: TypeAlias = Literal["on-change"] | EveryNotation | CronNotation


def read_sink(found: Any) -> SinkAddress:
    """Return the address that a mapping names; a `SinkAddress` is returned unchanged."""
    return found if isinstance(found, SinkAddress) else validated(SinkNotation, found).address()


def read_schedule(found: Any, info: ValidationInfo) -> Schedule:
    """Return the schedule of ``on-change``, ``{every: …}`` or ``{cron: …, timezone: …}``; a `Schedule` is returned unchanged."""
    if isinstance(found, OnChange | Every | Cron):
        return _check_source(found, info) if isinstance(found, OnChange) else _check_times(found, info)
    if found == ON_CHANGE:
        return _check_source(OnChange(), info)
    if isinstance(found, dict) and "cron" in found:
        notation = validated(CronNotation, found)
        return _check_times(Cron(expression=notation.cron, timezone=notation.timezone), info)
    if isinstance(found, dict) and found:
        return _check_times(Every(seconds=duration_seconds(validated(EveryNotation, found).every)), info)
    hint = nearest(found, [ON_CHANGE]) if isinstance(found, str) else ""
    raise problem(
        'Expected on-change, {every: 15m} or {cron: "0 2 * * *", timezone: Europe/Berlin}, '
        f"found {described_value(found)}.{hint}"
    )


def _check_source(schedule: Schedule, info: ValidationInfo) -> Schedule:
    reading = info.context
    if (
        isinstance(schedule, OnChange)
        and isinstance(reading, Reading)
        and reading.connector
        and reading.connector.scheduled_only
    ):
        raise problem("This source does not report changes, so it needs 'schedule: {every: 15m}' or a cron expression.")
    return schedule


def _check_times(schedule: Schedule, info: ValidationInfo) -> Schedule:
    reading, source = info.context, info.data.get("source")
    if isinstance(reading, Reading) and reading.connector and source is not None and source.complete:
        refusal = reading.connector.schedule_refusal(source.options)
        if refusal:
            raise problem(f"{refusal} Remove the setting schedule.")
    return schedule
