"""The seam between the rules for files and the folder with the files, which is on disk or on a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from connectors.directory.readiness.rule import ScannedFolder
from connectors.directory.scan import ScanResult
from connectors.files.file_batches import OpenFile
from connectors.files.identity import Identity
from connectors.files.receipt import AcknowledgedFile
from ingestd.sdk import SourceError


class DropFile(Protocol):
    """One file of a drop folder, whether it exists or not."""

    @property
    def path(self) -> Path:
        """The path for sentences."""

    def status(self) -> Identity:
        """Return what the status of the file says.

        Raises:
            FileNotFoundError: it does not exist.
            OSError, SourceUnavailable: its status can't be read now.
        """

    def open(self) -> OpenFile:
        """Open the file for reading. The caller closes it.

        Raises:
            FileNotFoundError: it does not exist any more.
            SourceBroken: it is not a regular file, or must not be read.
            OSError, SourceUnavailable: it can't be read now, or changed meanwhile.
        """


class DropFolder(ScannedFolder, Protocol):
    """The files of one source, by their paths below the folder, with slashes."""

    @property
    def root(self) -> Path:
        """The path of the folder, for sentences."""

    def check(self) -> None:
        """Check that the folder is there, so that an absent file is a removed file.

        Raises:
            SourceUnavailable: it is not.
        """

    def scan(self) -> ScanResult:
        """Return all files.

        Raises:
            SourceUnavailable: they can't be listed to the end.
        """

    def file(self, name: str) -> DropFile:
        """Return the file of this name.

        Raises:
            SourceBroken: the name leads out of the folder.
        """

    def kind(self, name: str) -> Literal["file", "other", "absent"]:
        """Return the file with the name."""


class Disposer(Protocol):
    """Removes acknowledged files as the options say, with receipts and rejected rows."""

    def check_removable(self, name: str, ended: float) -> None:
        """Check that a file can be removed, before anything that belongs to it is. ``ended``: when it was read.

        Raises:
            SourceUnavailable: it can't be moved.
        """

    def dispose(self, files: Sequence[AcknowledgedFile]) -> Sequence[SourceError | None]:
        """Write the rejected rows and the receipt of each file, then keep, archive or delete it.

        The result has None for each file, or `SourceUnavailable` if something can't be written or moved. The call can be
        repeated.
        """

    def dispose_companion(self, name: str, ended: float) -> None:
        """Archive or delete a companion in the same way as its file; do nothing if there is no companion."""

    def move_to_failed(self, name: str, identity: Identity, reason: str) -> bool:
        """Move an unreadable file to the folder for such files, and write the reason beside it. Return True if it was moved.

        Raises:
            SourceUnavailable: it can't be moved now.
        """
