"""The settings of a source with this connector."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class InstrumentStatusOptions(BaseModel):
    """A folder of status files, one file for each instrument. A relative path starts at the configuration file's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(
        description="The folder. While it is missing, the source is unavailable and no entry is removed."
    )
    pattern: str = Field(default="*.status", min_length=1, description="Which file names are read, as a glob.")
    settle_seconds: float = Field(
        default=2, ge=0, description="A file is read when its modification time is at least this many seconds old."
    )
    deletes: Literal["keep", "remove"] = Field(
        default="keep", description="Whether the entry of a line is removed when the line is removed from its file."
    )
