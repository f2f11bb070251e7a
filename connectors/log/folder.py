"""The folder of logs: its files, and how they are opened."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from connectors.beneath import Folder, NotRegularFile, RootedPath
from connectors.files import Identity
from connectors.filesystem import describe_error
from ingestd.sdk import SourceBroken, SourceUnavailable


class LogFolder:
    """One folder.

    Links are not followed, because the target of a link can't be distinguished from a rotated file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def files(self) -> Mapping[str, Identity]:
        """Return the regular files by name.

        Raises:
            SourceUnavailable: the folder does not exist or can't be listed.
        """
        found = {}
        try:
            with Folder.open_root(self.path) as folder, folder.entries() as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed since the folder was listed
                    if stat.S_ISREG(status.st_mode) and _is_utf8(entry.name):
                        found[entry.name] = Identity.from_status(status)
        except OSError as error:
            raise SourceUnavailable(f"The folder {self.path} can't be listed: {describe_error(error)}") from error
        return found

    def is_readable(self, name: str) -> bool:
        """Return False if the file can't be opened, except because it is gone."""
        try:
            os.close(RootedPath(self.path, name).open_file())
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def open(self, name: str, identity: Identity) -> io.FileIO | None:
        """Open a file; return None if the name no longer belongs to the file of ``identity``.

        Raises:
            SourceBroken: ingestd has no permission to read it.
            SourceUnavailable: its file system does not respond.
        """
        try:
            descriptor = RootedPath(self.path, name).open_file()
        except (FileNotFoundError, NotRegularFile):
            return None
        except PermissionError as error:
            raise SourceBroken(f"{name} can't be opened: {error.strerror}. Allow ingestd's user to read it.") from error
        except OSError as error:
            raise SourceUnavailable(f"{self.path / name} can't be opened: {describe_error(error)}") from error
        if Identity.from_status(os.fstat(descriptor))[:2] != identity[:2]:
            os.close(descriptor)
            return None
        return os.fdopen(descriptor, "rb", buffering=0)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
