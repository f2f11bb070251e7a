"""What a person can say about a drop folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connectors.directory.readiness import ConfiguredRule, RuleName, Trailer, configure_rule
from connectors.directory.readiness.rule import ReadinessRule
from connectors.formats import PATTERNS, ConfiguredFormat, FormatName

_NAMED = 5


class DirectoryOptions(BaseModel):
    """A folder of files; relative paths start at the configuration file's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(description="The folder in which files are dropped.")
    pattern: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(min_length=1)] = Field(
        default=PATTERNS,
        description=(
            "A glob or a list of them. Without a slash it is held against the file's name, with one against its path below"
            " the folder. Names that start with a dot or ~$, or end in .tmp, .part, .crdownload or .filepart never match."
        ),
    )
    case_sensitive: bool = Field(
        default=False,
        description="Whether pattern distinguishes RUN01.CSV from run01.csv; by default both match *.csv.",
    )
    recursive: bool = Field(default=False, description="Whether files in sub-folders are taken too.")
    settle_seconds: float = Field(
        default=2,
        ge=0,
        description="How long a file's size and time must stand still before it is taken; 0 takes it at first sight.",
    )
    ready: list[RuleName | ConfiguredRule] = Field(
        default=[],
        description=(
            "What else must be true before a file is taken, all of it: rules by name, such as marker, or with settings, such"
            ' as {type: marker, name: "{stem}.ready"}. docs/files.md has an example of each.'
        ),
    )
    empty_seconds: float = Field(
        default=60,
        ge=0,
        description="How long a file may be empty before it is parked; it is taken once something is in it.",
    )
    canary: Annotated[str, Field(pattern=r"^([^/]+(/[^/]+)*)?$")] = Field(
        default="",
        description=(
            "A file that is in the folder while its share is mounted, such as .mounted: without it the source counts as away."
            " Empty: none."
        ),
    )
    after: Literal["keep", "archive", "delete"] = Field(
        default="keep", description="What becomes of a file once everything from it was delivered or parked."
    )
    archive: Path | None = Field(
        default=None, description="The folder into which settled files move; needed where after is archive."
    )
    archive_folders: Literal["none", "year", "month", "day"] = Field(
        default="none",
        description=(
            "Sub-folders of the archive by the date on which a file was read: 2026, 2026/03 or 2026/03/14, before the file's own"
            " path."
        ),
    )
    delete_grace_seconds: float = Field(
        default=0,
        ge=0,
        description="With after: delete, how long after its reading a settled file stays, to be deleted if it is unchanged.",
    )
    receipt: bool = Field(
        default=True,
        description=(
            "Whether what became of a file is written down as NAME.receipt.json: beside the archived file, or in receipts."
        ),
    )
    receipts: Path | None = Field(
        default=None, description="The folder of the receipts; without it only archived files have one, beside them."
    )
    quarantine: Path | None = Field(
        default=None,
        description=(
            "The folder into which the rejected rows of a file are written, to be mended and dropped back. Without it,"
            " rejected in the archive where there is one."
        ),
    )
    failed: Path | None = Field(
        default=None,
        description=(
            "The folder into which files move that can't be read at all, each with its reason beside it. Without it, failed in"
            " the archive with after: archive; else they stay."
        ),
    )
    watch: Literal["auto", "events", "polling"] = Field(
        default="auto",
        description=(
            "How changes are noticed. auto tries out on each mount whether the system tells of them, and looks every"
            " poll_seconds where it does not: on NFS, SMB and other file systems that others change."
        ),
    )
    poll_seconds: float = Field(
        default=5, gt=0, description="How often the folder is looked through where events don't come."
    )
    rescan_seconds: float = Field(
        default=30, gt=0, description="How often the folder is looked through for what events have missed."
    )
    member: str = Field(
        default="*",
        min_length=1,
        description="Of a zip file, which members are read: a glob of names, or of paths where it has a slash.",
    )
    format: FormatName | ConfiguredFormat | None = Field(
        default=None,
        description=(
            "The format of the files, by its name or with settings of its own, such as {type: csv}; without it the end of"
            " each name tells."
        ),
    )

    @model_validator(mode="after")
    def _archive_fits(self) -> Self:
        if self.after == "archive" and self.archive is None:
            raise ValueError("after: archive needs to know where: set archive to a folder")
        if self.archive is not None and self.archive == self.path:
            raise ValueError("archive must be another folder than path, or archived files would be read again")
        for name in ("quarantine", "failed"):
            if getattr(self, name) == self.path:
                raise ValueError(f"{name} must be another folder than path, or what lies there would be read at once")
        if self.delete_grace_seconds and self.after != "delete":
            raise ValueError("delete_grace_seconds is for after: delete")
        return self

    @model_validator(mode="after")
    def _rules_fit(self) -> Self:
        kinds = [type(rule) for rule in self.rules]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"ready names the rule {kind.model_fields['type'].default} twice")
        return self

    @property
    def rules(self) -> tuple[ReadinessRule, ...]:
        """The readiness rules with their settings."""
        return tuple(configure_rule(rule) for rule in self.ready)

    @property
    def trailer(self) -> Trailer | None:
        """The rule by which the last line of a file is no record, where there is one."""
        return next((rule for rule in self.rules if isinstance(rule, Trailer)), None)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The globs, always as several."""
        return (self.pattern,) if isinstance(self.pattern, str) else tuple(self.pattern)

    @property
    def patterns_in_words(self) -> str:
        """The globs for a sentence: the default ones and long lists in a few words."""
        if self.patterns == tuple(PATTERNS):
            return "the endings of the known formats"
        first, more = self.patterns[:_NAMED], len(self.patterns) - _NAMED
        return ", ".join(first) + (f" and {more} more" if more > 0 else "")
