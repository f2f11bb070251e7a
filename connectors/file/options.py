"""What a person can say about one file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from connectors.formats import ConfiguredFormat, FormatName


class FileOptions(BaseModel):
    """One file, such as a workbook on a share; a relative path starts at the configuration file's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(
        description="The file. It may be missing for a while: then the source is away, and nothing is removed."
    )
    settle_seconds: float = Field(
        default=5,
        ge=0,
        description="How long the file's size and time must stand still after it was saved before it is read.",
    )
    deletes: Literal["keep", "remove"] = Field(
        default="keep",
        description=(
            "What becomes of the entries of rows that are no longer in the file. With remove, a file without a single row is"
            " not believed: it is parked instead."
        ),
    )
    watch: Literal["auto", "events", "polling"] = Field(
        default="auto",
        description="How changes are noticed; as of the connector directory.",
    )
    poll_seconds: float = Field(default=5, gt=0, description="How often the file is looked at where events don't come.")
    rescan_seconds: float = Field(
        default=30, gt=0, description="How often the file is looked at for what events have missed."
    )
    member: str = Field(
        default="*",
        min_length=1,
        description="Of a zip file, which members are read: a glob of names, or of paths where it has a slash.",
    )
    format: FormatName | ConfiguredFormat | None = Field(
        default=None,
        description=(
            "The file's format, by its name or with settings of its own, such as {type: excel, sheet: Masses}; without it the"
            " end of its name tells."
        ),
    )
