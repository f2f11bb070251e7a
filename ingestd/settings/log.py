"""Where the log of the daemon is collected, for `ingestd support-bundle`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ingestd.settings.part import SettingsPart


class LogSettings(SettingsPart):
    """The daemon logs to standard error. These settings name the target to which this output is redirected."""

    file: Path | None = Field(
        default=None,
        description="The file to which standard error of the daemon is redirected; `ingestd support-bundle` reads the "
        "end of the file. Default: the journal of systemd.",
        examples=["var/ingestd.log"],
    )
    unit: str = Field(
        default="ingestd.service",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9:_.@\\-]{0,254}$",
        description="The systemd unit of the daemon. Without `file`, `ingestd support-bundle` reads the log of this "
        "unit from the journal.",
    )
