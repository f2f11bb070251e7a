"""The options of a drop folder."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from connectors.directory.drop_options import DropOptions
from connectors.option_types import Watch


class DirectoryOptions(DropOptions):
    """A folder of files; relative paths start at the configuration file's folder."""

    path: Path = Field(description="The folder in which files are dropped.")
    archive: Path | None = Field(
        default=None, description="The folder into which acknowledged files move; required with after: archive."
    )
    receipts: Path | None = Field(
        default=None,
        description="The folder of the receipts. Default: each archived file has a receipt beside it, and other files have none.",
    )
    quarantine: Path | None = Field(
        default=None,
        description=(
            "The folder into which the rejected rows of a file are written, to be corrected and dropped again. Default: rejected"
            " in the archive, if there is one."
        ),
    )
    failed: Path | None = Field(
        default=None,
        description=(
            "The folder into which unreadable files move, each with its reason beside it. Default: failed in the archive with"
            " after: archive; otherwise they stay."
        ),
    )
    watch: Watch = Field(
        default="auto",
        description=(
            "How changes are noticed. auto tests on each mount whether the system reports events. Without events, as on NFS and"
            " SMB, the folder is scanned every poll_seconds."
        ),
    )
    poll_seconds: float = Field(default=5, gt=0, description="How often the folder is scanned if there are no events.")
    rescan_seconds: float = Field(
        default=30,
        gt=0,
        description="How often the folder is scanned in addition to events, for changes that the events missed.",
    )

    @model_validator(mode="after")
    def _check_folders(self) -> Self:
        if self.after == "archive" and self.archive is None:
            raise ValueError("after: archive needs a folder: set archive")
        if self.archive is not None and self.archive == self.path:
            raise ValueError("archive must be another folder than path, or archived files would be read again")
        for name in ("quarantine", "failed"):
            if getattr(self, name) == self.path:
                raise ValueError(f"{name} must be another folder than path, or its files would be read at once")
        return self
