"""Connectors with options of several kinds, and a configuration that uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from ingestd.core.errors import ConfigurationError
from ingestd.sdk import Batch, Connector, Cursor, Partition
from ingestd.settings.loader import load_settings
from ingestd.settings.model import Settings
from ingestd.settings.validation import ConnectorUnusable

GOOD = """\
service: {url: "http://127.0.0.1:8400", api_key: "${env:KEY}"}
state: var/ingestd.db
pipelines:
  - name: bench
    source: {connector: rig, path: drop}
    entries: {key: "{part}.mass", value: "{mass}"}
    sink: {workspace: w, label: Bench}
"""


class RigOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(description="The folder that is read.")
    pattern: str | list[str] = Field(default="*", description="Which files.")
    settle_seconds: float = Field(default=2, ge=0, description="How long a file must be still.")
    retries: int = Field(default=3, ge=0, le=9, description="How often to try.")
    strict: bool = Field(default=False, description="Whether to be strict.")
    after: Literal["keep", "archive", "delete"] = Field(default="keep", description="What becomes of a file.")
    archive: Path | None = Field(default=None, description="Where it goes.")
    more: tuple[Path, ...] = Field(default=(), description="Further folders.")
    url: str | None = Field(default=None, description="Where the rig is.")
    password: SecretStr | None = Field(default=None, min_length=8, description="The rig's password.")

    @field_validator("url")
    @classmethod
    def _spells_the_url_out(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith("rig:"):
            raise ValueError(f"{url!r} does not begin with rig:")
        return url

    @model_validator(mode="after")
    def _archives_somewhere(self) -> RigOptions:
        if self.after == "archive" and self.archive is None:
            raise ValueError("after: archive needs the folder 'archive'")
        return self


class Idle(Connector):
    """A connector without records."""

    def partitions(self) -> Iterable[Partition]:
        return ()

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - it has nothing
        yield from ()


class Rig(Idle):
    """A connector with options of each kind."""

    Options = RigOptions


class LaxOptions(BaseModel):
    depth: int = 1


class Lax(Idle):
    """A connector with options that permit unknown keys, as pydantic does by default."""

    Options = LaxOptions


class Poll(Idle):
    """A connector that can only be scheduled."""

    Options = LaxOptions
    scheduled_only = True


class Subscribe(Idle):
    """A connector that must stay open, unless ``depth`` is not 1."""

    Options = LaxOptions

    @classmethod
    def schedule_refusal(cls, options: LaxOptions) -> str:
        return "The messages between two runs would be lost." if options.depth == 1 else ""


class FaultyOptions(BaseModel):
    depth: int = 1

    @field_validator("depth")
    @classmethod
    def _fails(cls, depth: int) -> NoReturn:
        raise KeyError(depth)


class Faulty(Idle):
    """A connector with a defect in the validator of its options."""

    Options = FaultyOptions


CONNECTORS: Mapping[str, type[Connector]] = {
    "rig": Rig,
    "lax": Lax,
    "poll": Poll,
    "subscribe": Subscribe,
    "faulty": Faulty,
}


def options_of(name: str) -> type[Connector]:
    if name not in CONNECTORS:
        raise ConnectorUnusable(f"There is no connector '{name}'.")
    return CONNECTORS[name]


def load(text: str | bytes, folder: Path, **environment: str) -> Settings:
    path = folder / "ingestd.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_settings(path, options_of=options_of, environment={"KEY": "k-1234567", **environment})


def mistakes(text: str | bytes, folder: Path, **environment: str) -> list[str]:
    """Return each mistake in a configuration as it is printed, without the folder of the file."""
    try:
        load(text, folder, **environment)
    except ConfigurationError as error:
        return [str(mistake).removeprefix(f"{folder}/") for mistake in error.mistakes]
    return []


def with_source(source: str) -> str:
    return GOOD.replace("{connector: rig, path: drop}", source)
