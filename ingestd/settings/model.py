"""What a configuration says, as frozen values. The descriptions become the JSON Schema and the documentation.

A ``repr`` shows names only: any text in the file may come from a secret.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    SecretStr,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec
from ingestd.settings.drift import DriftInput, DriftPlan, read_drift
from ingestd.settings.notation import (
    ON_CHANGE,
    EntriesInput,
    ScheduleInput,
    SinkNotation,
    read_entries,
    read_schedule,
    read_sink,
)
from ingestd.settings.reading import ConnectorUnusable, Reading, problem, refuse, validated
from ingestd.settings.schedule import OnChange, Schedule

_NAME = r"[a-z0-9]+([-_][a-z0-9]+)*"
_CLIENT_ID = r"[!-~]{1,128}"
_SECONDS_AT_MOST = 3_600.0


class _Part(BaseModel):
    # A default is checked too where a field asks for it; infinity is no number of seconds.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def client_id_of(host: str) -> str:
    """A host's name as a client id: visible ASCII, 1 to 128 characters."""
    return re.sub(r"[^!-~]+", "-", host)[:128] or "ingestd"


def _service_url(text: str) -> str:
    expected = "Expected the service's address, such as http://127.0.0.1:8400 or https://workspace.example/api"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    else:
        if usable and (parts.username is not None or parts.password is not None):
            raise problem(
                "The address holds a user name or a password; the service knows its clients by 'api_key'. Remove them."
            )
        if usable and (parts.query or parts.fragment):
            raise problem(f"{expected}: nothing may follow its path ('?' or '#').")
    if not usable or re.search(r"[^!-~]", text):
        raise problem(f"{expected}.")
    return text.rstrip("/")


def _api_key(key: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[!-~]+", key.get_secret_value()):
        raise problem("The API key is empty or holds a blank, a line end or a character beyond ASCII; copy it again.")
    return key


def _client_id(text: str) -> str:
    if not re.fullmatch(_CLIENT_ID, text):
        raise problem("Expected 1 to 128 visible ASCII characters without blanks.")
    return text


def _name(name: str, info: ValidationInfo) -> str:
    if not re.fullmatch(_NAME, name):
        raise problem("Expected small letters and digits, in words joined by '-' or '_', such as mass-budget.")
    if isinstance(info.context, Reading):
        if name in info.context.names:
            raise problem(f"Another pipeline is called '{name}' already; give each one a name of its own.")
        info.context.names.add(name)
    return name


class ServiceSettings(_Part):
    """The workspace service, and how this daemon presents itself to it."""

    url: Annotated[str, AfterValidator(_service_url)] = Field(
        repr=False, description="The service's address.", examples=["http://127.0.0.1:8400"]
    )
    api_key: Annotated[SecretStr, AfterValidator(_api_key)] = Field(
        repr=False,
        description="The key that the service gave; keep it outside this file.",
        examples=["${env:INGESTD_API_KEY}", "${credential:api-key}"],
    )
    client_id: Annotated[str, AfterValidator(_client_id)] = Field(
        default_factory=lambda: client_id_of(socket.gethostname()),
        repr=False,
        description="The name by which subscribers recognise what this daemon wrote; the host's name where it is left out.",
        examples=["bench-3"],
    )
    connect_timeout_seconds: float = Field(
        default=5.0, gt=0, le=_SECONDS_AT_MOST, description="How long a connection may take to come about."
    )
    read_timeout_seconds: float = Field(
        default=30.0, gt=0, le=_SECONDS_AT_MOST, description="How long the service may be silent while it answers."
    )
    write_timeout_seconds: float = Field(
        default=30.0, gt=0, le=_SECONDS_AT_MOST, description="How long sending may stand still."
    )


class SourceSettings(_Part):
    """One configured connector. In the file the options stand beside ``connector``."""

    connector: str = Field(description="The kind of system that is read.")
    options: SerializeAsAny[BaseModel] = Field(repr=False, description="The connector's options, checked by itself.")

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
            raise
        except Exception as error:  # a connector is somebody else's code
            what = f"The connector '{name}' failed while it checked its options ({type(error).__name__})"
            raise problem(f"{what}. That is a fault of the connector; report it to its author.") from error
        return cls(connector=name, options=checked)


class PipelineSettings(_Part):
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

    @model_validator(mode="before")
    @classmethod
    def _forget_the_last_source(cls, found: Any, info: ValidationInfo) -> Any:
        if isinstance(info.context, Reading):
            info.context.connector = None
        return found


class RejectedSettings(_Part):
    """How much of what is rejected is kept. Nothing is forgotten by itself unless this says so."""

    keep_days: float | None = Field(
        default=None, gt=0, le=36_600, description="Forget what was rejected last longer ago than so many days."
    )
    keep_rows: int | None = Field(default=None, ge=1, description="Forget the oldest beyond so many.")


class Settings(_Part):
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
