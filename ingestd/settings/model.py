"""What a configuration says, as frozen values. The descriptions become the JSON Schema and the documentation.

A ``repr`` shows names only: any text in the file may come from a secret.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec
from ingestd.settings.drift import DriftInput, DriftPlan, RemoveUnexplained, read_drift
from ingestd.settings.entries import EntriesInput, read_entries
from ingestd.settings.notation import (
    ON_CHANGE,
    ScheduleInput,
    SinkNotation,
    read_schedule,
    read_sink,
)
from ingestd.settings.part import SettingsPart
from ingestd.settings.schedule import OnChange, Schedule
from ingestd.settings.service import ServiceSettings
from ingestd.settings.validation import ConnectorUnusable, Reading, problem, refuse, validated

_NAME = r"[a-z0-9]+([-_][a-z0-9]+)*"


def _name(name: str, info: ValidationInfo) -> str:
    if not re.fullmatch(_NAME, name):
        raise problem("Expected small letters and digits, in words joined by '-' or '_', such as mass-budget.")
    if isinstance(info.context, Reading):
        if name in info.context.names:
            raise problem(f"Another pipeline is called '{name}' already; give each one a name of its own.")
        info.context.names.add(name)
    return name


class SourceSettings(SettingsPart):
    """One configured connector. In the file the options stand beside ``connector``."""

    connector: str = Field(description="The kind of system that is read.")
    options: SerializeAsAny[BaseModel] = Field(repr=False, description="The connector's options, checked by itself.")
    _complete: bool = PrivateAttr(default=True)

    @property
    def complete(self) -> bool:
        """False if a secret of the options was not filled in: then they are unchecked, and no connector can use them."""
        return self._complete

    @model_validator(mode="wrap")
    @classmethod
    def _by_connector(cls, found: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        reading = info.context
        if not isinstance(reading, Reading):
            return handler(found)
        reading.connector = None
        if not isinstance(found, dict):
            raise problem("Expected a mapping with 'connector' and the connector's options.")
        options = dict(found)
        name = options.pop("connector", None)
        if name is None:
            refuse(("connector",), "missing" if "connector" not in found else "string_type", found.get("connector"))
        if not isinstance(name, str):
            refuse(("connector",), "string_type", name)
        try:
            reading.connector = reading.options_of(name)
        except ConnectorUnusable as error:
            refuse(("connector",), problem(str(error)), name)
        try:
            checked = validated(reading.connector.Options, options)
        except ValidationError:
            if reading.secrets or "${" not in json.dumps(options):
                raise
            source = cls(connector=name, options=reading.connector.Options.model_construct(**options))
            source._complete = False
            return source
        except Exception as error:  # a connector is somebody else's code
            what = f"The connector '{name}' failed while it checked its options ({type(error).__name__})"
            raise problem(f"{what}. That is a fault of the connector; report it to its author.") from error
        return cls(connector=name, options=checked)


class PipelineSettings(SettingsPart):
    """From a source by a mapping to a sink."""

    name: Annotated[str, AfterValidator(_name)] = Field(
        description="The pipeline's name in commands, logs and metrics; unique in the file.",
        examples=["mass-budget"],
        json_schema_extra={"pattern": f"^{_NAME}$"},
    )
    source: SourceSettings = Field(description="What is read: a connector and its options.")
    entries: Annotated[tuple[EntrySpec, ...], PlainValidator(read_entries, json_schema_input_type=EntriesInput)] = (
        Field(repr=False, description="What becomes of a record: one mapping, or a list of them.")
    )
    sink: Annotated[SinkAddress, PlainValidator(read_sink, json_schema_input_type=SinkNotation)] = Field(
        repr=False, description="Where the entries go: a data sink in a workspace."
    )
    schedule: Annotated[Schedule, PlainValidator(read_schedule, json_schema_input_type=ScheduleInput)] = Field(
        default=OnChange(),
        validate_default=True,
        repr=False,
        json_schema_extra={"default": ON_CHANGE},
        description="When the source is read: on-change, {every: 15m}, or {cron: ..., timezone: ...}.",
    )
    drift: Annotated[DriftPlan, PlainValidator(read_drift, json_schema_input_type=DriftInput)] = Field(
        default_factory=DriftPlan,
        repr=False,
        description="Read the sink back on a schedule, and what to do about keys that somebody else added, changed or removed: "
        "report, repair, adopt, or {mode: ..., every: ..., added: ...}. Left out: only when `ingestd drift` asks.",
    )

    unexplained: RemoveUnexplained = Field(
        default="own",
        description="What becomes of entries of the sink that no source explains, once every pipeline that writes the sink was "
        "read completely and each has deletes: remove. own: remove those that this daemon is known to have written; keep: only "
        "list them; remove: remove all of them, which is right only if nothing else writes the sink.",
    )

    @model_validator(mode="before")
    @classmethod
    def _forget_the_last_source(cls, found: Any, info: ValidationInfo) -> Any:
        if isinstance(info.context, Reading):
            info.context.connector = None
        return found


class RejectedSettings(SettingsPart):
    """How much of what is rejected is kept. Nothing is forgotten by itself unless this says so."""

    keep_days: float | None = Field(
        default=None, gt=0, le=36_600, description="Forget what was rejected last longer ago than so many days."
    )
    keep_rows: int | None = Field(default=None, ge=1, description="Forget the oldest beyond so many.")


class Settings(SettingsPart):
    """Everything that a configuration file says."""

    service: ServiceSettings = Field(description="The workspace service.")
    state: Path = Field(
        repr=False,
        description="The daemon's own file (SQLite); a relative path starts at this file's folder.",
        examples=["var/ingestd.db"],
    )
    rejected: RejectedSettings = Field(
        default_factory=RejectedSettings, description="How much of what is rejected is kept; left out: all of it."
    )
    pipelines: tuple[PipelineSettings, ...] = Field(
        min_length=1, description="What is kept in step, one item a pipeline."
    )

    @field_validator("pipelines")
    @classmethod
    def _unique(cls, pipelines: tuple[PipelineSettings, ...]) -> tuple[PipelineSettings, ...]:
        names = [pipeline.name for pipeline in pipelines]
        if len(set(names)) < len(names):
            raise problem("Every pipeline needs a name of its own.")
        return pipelines
