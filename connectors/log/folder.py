"""The files in a folder of logs, and how they are opened."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from connectors.files import Identity
from connectors.filesystem import describe_error
from ingestd.sdk import SourceBroken, SourceUnavailable


class Folder:
    """One folder. Links are not followed: what is behind one can't be told from what is beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def files(self) -> Mapping[str, Identity]:
        """The regular files by name.

        Raises:
            SourceUnavailable: the folder is not there or can't be listed.
        """
        found = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # gone since the folder was listed
                    if stat.S_ISREG(status.st_mode) and _is_text(entry.name):
                        found[entry.name] = Identity.from_status(status)
        except OSError as error:
            raise SourceUnavailable(f"The folder {self.path} can't be listed: {describe_error(error)}") from error
        return found

    def open(self, name: str, identity: Identity) -> io.FileIO | None:
        """Open a file; None where it is no longer the one of ``identity``.

        Raises:
            SourceBroken: it may not be read.
        SourceUnavailable: its file system does not respond.
        """
        try:
            descriptor = os.open(self.path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise SourceBroken(f"{name} can't be opened: {error.strerror}. Allow ingestd's user to read it.") from error
        except OSError as error:
            raise SourceUnavailable(f"{self.path / name} can't be opened: {describe_error(error)}") from error
        if Identity.from_status(os.fstat(descriptor))[:2] != identity[:2]:
            os.close(descriptor)
            return None
        return os.fdopen(descriptor, "rb", buffering=0)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
