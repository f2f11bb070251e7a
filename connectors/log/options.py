"""The options of the log connector."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from connectors.formats.csv import Csv
from connectors.formats.ndjson import Ndjson
from connectors.formats.text_lines import TextLines
from connectors.log.names import NAME, WILDCARD
from connectors.option_types import ConnectorOptions, Texts, Watch, as_tuple

_OPEN_END = re.compile(r"[*?\]]$")


class LogOptions(ConnectorOptions):
    """Files to which lines are appended; relative paths start at the configuration file's folder."""

    path: Path = Field(description="The folder in which the logs and their rotated files are.")
    pattern: Texts = Field(
        default=["*.csv", "*.tsv", "*.tab", "*.ndjson", "*.jsonl"],
        description=(
            "The names of files that are being written, as a glob or a list of globs: each file is a log. It must not match the"
            " names of rotated files."
        ),
    )
    rotated: Texts = Field(
        default=[f"{NAME}.*", f"{NAME}-*"],
        description=(
            "The names of the rotated files of a log, as a glob or a list of globs. A rotated file may be packed (.gz, .bz2,"
            " .xz, .zst). {name} means the log's name; required unless pattern is the name of one file."
        ),
    )
    case_sensitive: bool = Field(
        default=False,
        description="Whether pattern and rotated distinguish RUN01.CSV from run01.csv; by default both match *.csv.",
    )
    idle_seconds: float = Field(
        default=5,
        ge=0,
        description=(
            "How long a last line without a line end waits before it is read as it is. An open quote waits as long: then its"
            " line is rejected, and the lines below it are read."
        ),
    )
    watch: Watch = Field(default="auto", description="How new lines are noticed; as for the connector directory.")
    poll_seconds: float = Field(default=1, gt=0, description="How often the logs are checked if there are no events.")
    rescan_seconds: float = Field(
        default=30, gt=0, description="How often the logs are checked besides events, because events can be missed."
    )
    format: Literal["csv", "ndjson"] | Annotated[Csv | Ndjson | TextLines, Field(discriminator="type")] | None = Field(
        default=None,
        description=(
            "csv, ndjson or text, by name or with its own settings, such as {type: csv, encoding: windows-1252}; text needs its"
            " pattern. Default: by the suffix of each log."
        ),
    )

    @property
    def incremental(self) -> bool:
        """True, because a reading yields only the lines after the cursor."""
        return True

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if any(_OPEN_END.search(pattern) for pattern in self.patterns):
            raise ValueError(
                "pattern must end in the logs' own suffix, such as *.csv, or it matches rotated files, too"
            )
        if any("/" in glob for glob in (*self.patterns, *self.rotations)):
            raise ValueError("pattern and rotated are names in the folder path; they have no slash")
        if self.only_log is None and any(NAME not in glob for glob in self.rotations):
            raise ValueError("rotated must contain {name} if there may be several logs")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The globs of logs as a tuple."""
        return as_tuple(self.pattern)

    @property
    def rotations(self) -> tuple[str, ...]:
        """The globs of rotated files as a tuple."""
        return as_tuple(self.rotated)

    @property
    def only_log(self) -> str | None:
        """The log's name if there can be only one log; else None."""
        only = self.patterns[0]
        return None if len(self.patterns) > 1 or WILDCARD.search(only) else only
