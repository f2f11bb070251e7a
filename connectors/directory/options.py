"""What a person can say about a drop folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from connectors.formats import PATTERNS, ConfiguredFormat, FormatName


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
    recursive: bool = Field(default=False, description="Whether files in sub-folders are taken too.")
    settle_seconds: float = Field(
        default=2,
        ge=0,
        description="How long a file's size and time must stand still before it is taken; 0 takes it at first sight.",
    )
    after: Literal["keep", "archive", "delete"] = Field(
        default="keep", description="What becomes of a file once everything from it was delivered or parked."
    )
    archive: Path | None = Field(
        default=None, description="The folder into which settled files move; needed where after is archive."
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
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The globs, always as several."""
        return (self.pattern,) if isinstance(self.pattern, str) else tuple(self.pattern)
