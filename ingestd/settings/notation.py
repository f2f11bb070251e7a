"""The short notations of a sink, a schedule and a duration, and the values that they are converted to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from ingestd.core.address import SinkAddress
from ingestd.settings.cron import CronError, check_cron
from ingestd.settings.node import described_value, nearest
from ingestd.settings.schedule import Cron, Every, OnChange, Schedule, duration_seconds, known_timezone
from ingestd.settings.validation import Reading, problem, validated

ON_CHANGE = "on-change"

Read = TypeVar("Read")


class _Notation(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _with_unit(found: Any) -> Any:
    if isinstance(found, int | float) and not isinstance(found, bool):
        raise problem(f"Expected a duration with its unit, such as 15m or 90s; found {described_value(found)}.")
    return found


def _sentences(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """``read`` as a validator, whose ValueError is a sentence for people."""

    def validator(text: str) -> Read:
        try:
            return read(text)
        except ValueError as error:
            raise problem(str(error), error.position if isinstance(error, CronError) else None) from None

    return validator


def _a_duration(text: str) -> str:
    duration_seconds(text)
    return text


Duration: TypeAlias = Annotated[
    str,
    BeforeValidator(_with_unit),
    AfterValidator(_sentences(_a_duration)),
    Field(json_schema_extra={"pattern": r"^\s*(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?\s*$"}),
]
"""A duration as the file has it; `duration_seconds` reads it."""


class SinkNotation(_Notation):
    """A data sink in a workspace: by label, by id or by visible id, exactly one of them."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [name]} for name in ("label", "id", "visible_id")]}
    )

    workspace: str = Field(min_length=1, description="The workspace's id or label.")
    label: str | None = Field(
        default=None, min_length=1, max_length=255, description="The sink's label; it is created where there is none."
    )
    id: str | None = Field(default=None, min_length=1, description="The sink's id; it must exist.")
    visible_id: str | None = Field(
        default=None, validate_default=True, min_length=1, description="The sink's visible id; it must exist."
    )

    @field_validator("visible_id")
    @classmethod
    def _exactly_one(cls, visible_id: str | None, info: ValidationInfo) -> str | None:
        if "label" in info.data and "id" in info.data:
            given = [name for name in ("label", "id") if info.data[name] is not None]
            given += ["visible_id"] if visible_id is not None else []
            if not given:
                raise problem("A sink is named by one of 'label', 'id' and 'visible_id'; found none of them.")
            if len(given) > 1:
                raise problem(f"A sink is named by one of 'label', 'id' and 'visible_id'; found {' and '.join(given)}.")
        return visible_id

    def address(self) -> SinkAddress:
        """The same as one value."""
        if self.label is not None:
            return SinkAddress(workspace=self.workspace, by="label", name=self.label)
        if self.id is not None:
            return SinkAddress(workspace=self.workspace, by="id", name=self.id)
        return SinkAddress(workspace=self.workspace, by="visible_id", name=self.visible_id or "")


class EveryNotation(_Notation):
    """At a fixed distance."""

    every: Duration = Field(
        description="The time from the beginning of one run to that of the next, from 1s to 366d.",
        examples=["15m", "1h30m"],
    )


class CronNotation(_Notation):
    """At the times of a cron expression."""

    cron: Annotated[str, AfterValidator(_sentences(check_cron))] = Field(
        description="Minute, hour, day of the month, month and day of the week (0 and 7 are Sunday), as in crontab.",
        examples=["0 2 * * *", "*/10 6-18 * * mon-fri"],
    )
    timezone: Annotated[str, AfterValidator(_sentences(known_timezone))] = Field(
        default="UTC", description="The time zone of the expression, by its IANA name.", examples=["Europe/Berlin"]
    )


ScheduleInput: TypeAlias = Literal["on-change"] | EveryNotation | CronNotation


def read_sink(found: Any) -> SinkAddress:
    """A mapping; a value of our own passes as it is."""
    return found if isinstance(found, SinkAddress) else validated(SinkNotation, found).address()


def read_schedule(found: Any, info: ValidationInfo) -> Schedule:
    """``on-change``, ``{every: …}`` or ``{cron: …, timezone: …}``; a value of our own passes as it is."""
    if isinstance(found, OnChange | Every | Cron):
        return _possible(found, info)
    if found == ON_CHANGE:
        return _possible(OnChange(), info)
    if isinstance(found, dict) and "cron" in found:
        notation = validated(CronNotation, found)
        return Cron(expression=notation.cron, timezone=notation.timezone)
    if isinstance(found, dict) and found:
        return Every(seconds=duration_seconds(validated(EveryNotation, found).every))
    hint = nearest(found, [ON_CHANGE]) if isinstance(found, str) else ""
    raise problem(
        'Expected on-change, {every: 15m} or {cron: "0 2 * * *", timezone: Europe/Berlin}, '
        f"found {described_value(found)}.{hint}"
    )


def _possible(schedule: Schedule, info: ValidationInfo) -> Schedule:
    reading = info.context
    if (
        isinstance(schedule, OnChange)
        and isinstance(reading, Reading)
        and reading.connector
        and reading.connector.scheduled_only
    ):
        raise problem("This source can't tell when it changed; give it 'schedule: {every: 15m}' or a cron expression.")
    return schedule
