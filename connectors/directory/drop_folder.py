"""The interfaces of a drop folder and its files, which are on disk or on a server."""

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
    """A file name in a drop folder. The file may be missing."""

    @property
    def path(self) -> Path:
        """The path of the file, for messages."""

    def status(self) -> Identity:
        """Return the identity of the file from its status.

        Raises:
            FileNotFoundError: the file does not exist.
            OSError, SourceUnavailable: the status can't be read now.
        """

    def open(self) -> OpenFile:
        """Open the file for reading. The caller closes it.

        Raises:
            FileNotFoundError: the file does not exist any more.
            SourceBroken: the file is not a regular file, or must not be read.
            OSError, SourceUnavailable: the file can't be read now, or changed during the call.
        """


class DropFolder(ScannedFolder, Protocol):
    """The folder of one source. A file's name is its path below the folder, with slashes."""

    @property
    def root(self) -> Path:
        """The path of the folder, for messages."""

    def check(self) -> None:
        """Check that the folder is available. Only then does a missing file prove that the file was removed.

        Raises:
            SourceUnavailable: the folder is not available; it is not mounted, for example.
        """

    def scan(self) -> ScanResult:
        """Return the files of the folder.

        Raises:
            SourceUnavailable: the files can't be listed completely.
        """

    def file(self, name: str) -> DropFile:
        """Return the file of this name.

        Raises:
            SourceBroken: the name leads out of the folder.
        """

    def kind(self, name: str) -> Literal["file", "other", "absent"]:
        """Return whether the name belongs to a regular file, to something else, or to nothing."""


class Disposer(Protocol):
    """Removes acknowledged files as configured, and writes receipts and rejected rows."""

    def check_removable(self, name: str, ended: float) -> None:
        """Check that a file can be removed. ``ended``: the time when its reading ended, in seconds since the epoch.

        Raises:
            SourceUnavailable: the file can't be moved.
        """

    def dispose(self, files: Sequence[AcknowledgedFile]) -> Sequence[SourceError | None]:
        """Write the rejected rows and the receipt of each file, then keep, archive or delete the file.

        Return None or the error of each file, such as `SourceUnavailable` if it can't be moved. The call can be repeated.
        """

    def dispose_companion(self, name: str, ended: float) -> None:
        """Archive or delete a companion, as its file will be. A missing companion is ignored."""

    def move_to_failed(self, name: str, identity: Identity, reason: str) -> bool:
        """Move an unreadable file to the failed folder, with the reason in a text file. Return True if it was moved.

        Raises:
            SourceUnavailable: the file can't be moved now.
        """
