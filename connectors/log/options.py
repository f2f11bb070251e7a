"""What a person can say about files that grow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connectors.formats.csv import Csv
from connectors.formats.ndjson import Ndjson
from connectors.log.names import ANY_NAME, NAME

_Text = Annotated[str, Field(min_length=1)]
_OPEN_END = re.compile(r"[*?\]]$")


class LogOptions(BaseModel):
    """Files to which lines are appended; relative paths start at the configuration file's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(description="The folder in which the logs and their rotated files are.")
    pattern: _Text | Annotated[list[_Text], Field(min_length=1)] = Field(
        default=["*.csv", "*.tsv", "*.tab", "*.ndjson", "*.jsonl"],
        description=(
            "The names of files that are being written, as a glob or a list of them: each is a log of its own. It must not match"
            " the names of rotated files."
        ),
    )
    rotated: _Text | Annotated[list[_Text], Field(min_length=1)] = Field(
        default=[f"{NAME}.*", f"{NAME}-*"],
        description=(
            "How the older files of a log are called, as a glob or a list of them, each of which may be packed, too (.gz, .bz2,"
            " .xz, .zst). {name} stands for the log's name; needed unless pattern is the name of one file."
        ),
    )
    idle_seconds: float = Field(
        default=5,
        ge=0,
        description=(
            "How long a last line that has no end yet waits before it is taken as it is. Nothing else waits, but for a quote"
            " that is not closed: after so long its line is parked, and the lines below it are read."
        ),
    )
    watch: Literal["auto", "events", "polling"] = Field(
        default="auto",
        description="How new lines are noticed; as of the connector directory.",
    )
    poll_seconds: float = Field(
        default=1, gt=0, description="How often the logs are looked at where events don't come."
    )
    rescan_seconds: float = Field(
        default=30, gt=0, description="How often the logs are looked at for what events have missed."
    )
    format: Literal["csv", "ndjson"] | Annotated[Csv | Ndjson, Field(discriminator="type")] | None = Field(
        default=None,
        description=(
            "csv or ndjson, by name or with settings of its own, such as {type: csv, encoding: windows-1252}; without it the end"
            " of each name tells."
        ),
    )

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        if any(_OPEN_END.search(pattern) for pattern in self.patterns):
            raise ValueError(
                "pattern must end in the logs' own ending, such as *.csv, or it matches rotated files, too"
            )
        if any("/" in glob for glob in (*self.patterns, *self.rotations)):
            raise ValueError("pattern and rotated are names in the folder path; they have no slash")
        if self.alone is None and any(NAME not in glob for glob in self.rotations):
            raise ValueError("rotated must hold {name} where there may be several logs")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The globs of logs, always as several."""
        return (self.pattern,) if isinstance(self.pattern, str) else tuple(self.pattern)

    @property
    def rotations(self) -> tuple[str, ...]:
        """The globs of rotated files, always as several."""
        return (self.rotated,) if isinstance(self.rotated, str) else tuple(self.rotated)

    @property
    def alone(self) -> str | None:
        """The log's name where there can be only one."""
        only = self.patterns[0]
        return None if len(self.patterns) > 1 or ANY_NAME.search(only) else only
