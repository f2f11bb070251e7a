"""Where the log of the daemon is collected, for `ingestd support-bundle`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from ingestd.settings.part import SettingsPart


class LogSettings(SettingsPart):
    """The daemon logs to standard error. These settings name the place to which its standard error is redirected."""

    file: Path | None = Field(
        default=None,
        description="The file to which standard error of the daemon is redirected; `ingestd support-bundle` reads its "
        "end. Default: the journal of systemd.",
        examples=["var/ingestd.log"],
    )
    unit: str = Field(
        default="ingestd.service",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9:_.@\\-]{0,254}$",
        description="The systemd unit of the daemon; `ingestd support-bundle` reads its lines from the journal if there is no "
        "`file`.",
    )
