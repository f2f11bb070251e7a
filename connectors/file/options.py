"""The options of the file connector."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from connectors.formats import FormatSetting
from connectors.option_types import ConnectorOptions, MemberGlob, Watch


class FileOptions(ConnectorOptions):
    """One file, such as a workbook on a share; a relative path starts at the configuration file's folder."""

    path: Path = Field(description="The file. While it is missing, the source is unavailable and no entry is removed.")
    settle_seconds: float = Field(
        default=5,
        ge=0,
        description="How long the file's size and time must be unchanged after it was saved before it is read.",
    )
    deletes: Literal["keep", "remove"] = Field(
        default="keep",
        description=(
            "What happens to the entries of rows that are no longer in the file. With remove, a file without rows is rejected"
            " and removes nothing."
        ),
    )
    watch: Watch = Field(default="auto", description="How changes are noticed; as for the connector directory.")
    poll_seconds: float = Field(default=5, gt=0, description="How often the file is checked if there are no events.")
    rescan_seconds: float = Field(
        default=30, gt=0, description="How often the file is checked without an event, because events can be missed."
    )
    member: MemberGlob = "*"
    format: FormatSetting = Field(
        default=None,
        description=(
            "The file's format, by its name or with its own settings, such as {type: excel, sheet: Masses}. Default: by the"
            " file's suffix."
        ),
    )
