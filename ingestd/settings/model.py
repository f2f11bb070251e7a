"""The model of a configuration, as frozen values.

The descriptions of the fields appear in the JSON Schema and in error sentences. A ``repr`` shows names only, because any text
in the file may come from a secret.
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
from ingestd.core.groups import GroupSpec
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import EntrySpec
from ingestd.settings.contract import ContractSettings
from ingestd.settings.drift import DriftInput, DriftPlan, RemoveUnexplained, read_drift
from ingestd.settings.entries import EntriesInput, read_entries
from ingestd.settings.group import GroupSettings, check_entries_of_groups, read_group
from ingestd.settings.guard import GuardInput, read_guard
from ingestd.settings.listen import ListenSettings
from ingestd.settings.log import LogSettings
from ingestd.settings.notation import (
    ON_CHANGE,
    ScheduleInput,
    SinkNotation,
    read_schedule,
    read_sink,
)
from ingestd.settings.part import SettingsPart
from ingestd.settings.schedule import Schedule
from ingestd.settings.service import ServiceSettings
from ingestd.settings.standby import StandbySettings
from ingestd.settings.validation import ConnectorUnusable, Reading, problem, refuse, validated

_NAME = r"[a-z0-9]+([-_][a-z0-9]+)*"


def _check_name(name: str, info: ValidationInfo) -> str:
    if not re.fullmatch(_NAME, name):
        raise problem("Expected lower-case letters and digits, in words joined by '-' or '_', such as mass-budget.")
    if isinstance(info.context, Reading):
        if name in info.context.names:
            raise problem(f"Another pipeline has the name '{name}' already. Give each pipeline a different name.")
        info.context.names.add(name)
    return name


class SourceSettings(SettingsPart):
    """One configured connector. In the file, ``connector`` and its options are keys of the same mapping."""

    connector: str = Field(description="The connector that reads the source.")
    options: SerializeAsAny[BaseModel] = Field(
        repr=False, description="The connector's options, validated by its own model."
    )
    _complete: bool = PrivateAttr(default=True)

    @property
    def complete(self) -> bool:
        """False if a placeholder in the options is not filled.

        Such options are not validated, and no connector can use them.
        """
        return self._complete

    @model_validator(mode="wrap")
    @classmethod
    def _validate_options(cls, found: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Validate the options with the model of the connector."""
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
        except Exception as error:  # a connector may be foreign code
            what = f"The connector '{name}' failed while it validated its options ({type(error).__name__})"
            raise problem(f"{what}. This is a bug of the connector; report it to its author.") from error
        return cls(connector=name, options=checked)


class PipelineSettings(SettingsPart):
    """A source, a mapping and a sink."""

    name: Annotated[str, AfterValidator(_check_name)] = Field(
        description="The pipeline's name in commands, logs and metrics; unique in the file.",
        examples=["mass-budget"],
        json_schema_extra={"pattern": f"^{_NAME}$"},
    )
    source: SourceSettings = Field(description="The connector to read with, and its options.")
    entries: Annotated[tuple[EntrySpec, ...], PlainValidator(read_entries, json_schema_input_type=EntriesInput)] = (
        Field(repr=False, description="How a record becomes entries: one mapping, or a list of mappings.")
    )
    sink: Annotated[SinkAddress, PlainValidator(read_sink, json_schema_input_type=SinkNotation)] = Field(
        repr=False, description="The data sink of a workspace that receives the entries."
    )
    schedule: Annotated[Schedule, PlainValidator(read_schedule, json_schema_input_type=ScheduleInput)] = Field(
        default=ON_CHANGE,
        validate_default=True,
        repr=False,
        description="When the source is read: on-change, {every: 15m}, or {cron: ..., timezone: ...}.",
    )
    drift: Annotated[DriftPlan, PlainValidator(read_drift, json_schema_input_type=DriftInput)] = Field(
        default_factory=DriftPlan,
        repr=False,
        description="Whether the sink is compared periodically with the delivered values, and what happens to differences: "
        "report, repair, adopt, or {mode: ..., every: ..., added: ...}. Default: compare only when `ingestd drift` runs.",
    )

    contract: ContractSettings | None = Field(
        default=None,
        description="The columns of the source that each reading must have. Default: any columns.",
    )
    unexplained: RemoveUnexplained = Field(
        default="own",
        description="What happens to entries of the sink that no source has. `own` removes entries that the mirror records as "
        "delivered, `remove` removes all entries, and `keep` only lists them. Entries are removed only after every pipeline of "
        "the sink was read completely, and only if every pipeline has `deletes: remove`. Set `remove` only if nothing else "
        "writes to the sink.",
    )

    guard: Annotated[Guard, PlainValidator(read_guard, json_schema_input_type=GuardInput)] = Field(
        default_factory=lambda: DEFAULT_GUARD,
        repr=False,
        description="Limits beyond which a run of a file or table is held until `ingestd approve` or `ingestd discard`; or off. "
        "By default, a run is held if it removes at least half of the entries, or if at least half of all numbers or of the "
        "changed numbers change by the same factor, as for another unit. Both limits apply from 20 entries or numbers.",
    )

    group: Annotated[GroupSpec, PlainValidator(read_group, json_schema_input_type=GroupSettings)] | None = Field(
        default=None,
        repr=False,
        description="One record for each group of records of a file or table, before the mapping: {by: [...], take: {...}}.",
    )

    @model_validator(mode="after")
    def _check_group(self) -> Self:
        if getattr(self.source.options, "incremental", False):
            self._refuse_of_incremental()
        if self.group is not None:
            check_entries_of_groups(self.group, self.entries)
        return self

    def _refuse_of_incremental(self) -> None:
        """Refuse each setting that needs whole readings."""
        snapshot = "read the source with mode: snapshot if its connector has it."
        if self.group is not None:
            raise problem(
                "A group needs all of its records, but this source yields only new ones: an aggregate of them would be wrong. "
                f"Remove the setting group, or {snapshot}"
            )
        if "guard" in self.model_fields_set and self.guard != Guard():
            raise problem(
                "A guard compares whole readings, but this source is read incrementally. Remove the setting guard, or "
                f"{snapshot}"
            )
        if self.contract is not None and self.contract.contract().can_hold:
            raise problem(
                "A contract with hold needs whole readings, but this source is read incrementally. Use reject or accept, or "
                f"{snapshot}"
            )

    @model_validator(mode="before")
    @classmethod
    def _reset_connector(cls, found: Any, info: ValidationInfo) -> Any:
        if isinstance(info.context, Reading):
            info.context.connector = None
        return found


class RejectedSettings(SettingsPart):
    """How long rejected records and entries are kept. Without these settings, they are kept forever."""

    keep_days: float | None = Field(
        default=None, gt=0, le=36_600, description="Delete rejections after this many days."
    )
    keep_rows: int | None = Field(
        default=None, ge=1, description="Keep at most this many rejections; the oldest are deleted first."
    )


class Settings(SettingsPart):
    """The whole configuration file."""

    service: ServiceSettings = Field(description="The workspace service, and how the daemon reaches it.")
    state: Path = Field(
        repr=False,
        description="The state file of the daemon (SQLite). A relative path starts at the folder of the configuration file.",
        examples=["var/ingestd.db"],
    )
    rejected: RejectedSettings = Field(
        default_factory=RejectedSettings,
        description="How long rejected records and entries are kept. Default: forever.",
    )
    log: LogSettings = Field(
        default_factory=LogSettings,
        description="Where the daemon's log is collected, for `ingestd support-bundle`. Default: the journal of systemd.",
    )
    listen: ListenSettings | None = Field(
        default=None,
        description="Where the running daemon serves metrics, health and a page. Default: nowhere.",
    )
    standby: StandbySettings = Field(
        default_factory=StandbySettings,
        description="How several daemons share the configuration with `ingestd run --standby`; one daemon is active.",
    )
    pipelines: tuple[PipelineSettings, ...] = Field(
        min_length=1, description="What is read, how records become entries, and the sinks that get them."
    )

    @field_validator("pipelines")
    @classmethod
    def _unique(cls, pipelines: tuple[PipelineSettings, ...]) -> tuple[PipelineSettings, ...]:
        names = [pipeline.name for pipeline in pipelines]
        if len(set(names)) < len(names):
            raise problem("Two pipelines have the same name. Give each pipeline a different name.")
        return pipelines
