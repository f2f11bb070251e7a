"""A drop folder on disk."""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, cast

import msgspec

from connectors.beneath import Folder, LeadsOutside, NotRegularFile, RootedPath
from connectors.directory.options import DirectoryOptions
from connectors.directory.readiness.rule import TEXT_BYTES
from connectors.directory.scan import Scanner, ScanResult
from connectors.files.file_batches import OpenFile, open_file
from connectors.files.identity import Identity
from connectors.filesystem import translate_errors
from connectors.mounts import MountGuard
from ingestd.sdk import SourceBroken


class LocalFile(msgspec.Struct, frozen=True):
    """A file on disk. Implements `DropFile`. ``place``: the file's path; with ``after: keep``, its links are resolved."""

    place: RootedPath
    name: str

    @property
    def path(self) -> Path:
        """See `DropFile.path`."""
        return self.place.root / self.name

    def status(self) -> Identity:
        """See `DropFile.status`."""
        return Identity.from_status(self.place.status())

    def open(self) -> OpenFile:
        """See `DropFile.open`."""
        return open_file(self.place, self.name)


class LocalFolder:
    """A folder on disk. Implements `DropFolder`. ``excluded``, ``other_readers``: see `Scanner`."""

    def __init__(
        self,
        options: DirectoryOptions,
        folder: Path,
        *,
        excluded: Iterable[RootedPath],
        other_readers: Callable[[RootedPath], Collection[str]],
    ) -> None:
        self.root = folder
        self._guard = MountGuard(folder, options.canary)
        self._follows_links = options.after == "keep"
        self._scanner = Scanner(folder, options, excluded=excluded, other_readers=other_readers)

    def check(self) -> None:
        """See `DropFolder.check`."""
        self._guard.check()

    def scan(self) -> ScanResult:
        """See `DropFolder.scan`."""
        self._guard.check()
        found = self._scanner.scan()
        self._guard.check()  # if the share was unmounted during the scan, an empty folder was scanned
        return found

    def file(self, name: str) -> LocalFile:
        """See `DropFolder.file`. With ``after: keep``, links that stay in the folder are followed.

        Raises:
            SourceUnavailable: the file system does not respond.
        """
        with translate_errors(self.root / name):
            try:
                return LocalFile(self._place(name), name)
            except LeadsOutside:
                raise SourceBroken(f"{name} leads out of the folder {self.root}; it is not read.") from None

    def _place(self, name: str) -> RootedPath:
        place = RootedPath(self.root, name)
        return place.resolve() if self._follows_links or ".." in name.split("/") else place

    def has(self, name: str) -> bool:
        """Return True if the name exists below the folder, or if the folder itself is missing.

        Other errors are raised, because they do not prove that the file is missing.
        """
        try:
            RootedPath(self.root, name).status()
        except (FileNotFoundError, NotADirectoryError):
            return not self._exists()
        return True

    def _exists(self) -> bool:
        try:
            Folder.open_root(self.root, is_listed=False).close()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def kind(self, name: str) -> Literal["file", "other", "absent"]:
        """See `DropFolder.kind`."""
        try:
            status = self._place(name).status()
        except (FileNotFoundError, NotADirectoryError, LeadsOutside):
            return "absent"
        return "file" if stat.S_ISREG(status.st_mode) else "other"

    @contextmanager
    def open_scanned(self, name: str, identity: Identity) -> Iterator[BinaryIO]:
        """See `ScannedFolder.open_scanned`."""
        with os.fdopen(self._place(name).open_file(), "rb") as file:
            if not Identity.from_status(os.fstat(file.fileno())).has_same_content(identity):
                raise FileNotFoundError(errno.ENOENT, "It was replaced or written to since it was listed", name)
            yield cast("BinaryIO", file)

    def companion(self, name: str) -> Identity | None:
        """See `ScannedFolder.companion`."""
        try:
            status = RootedPath(self.root, name).status()
        except FileNotFoundError:
            return None
        return Identity.from_status(status) if stat.S_ISREG(status.st_mode) else None

    def companions(self, folder: str, pattern: str) -> Mapping[str, Identity]:
        """See `ScannedFolder.companions`."""
        found = {}
        with (RootedPath(self.root) / folder.rstrip("/")).open_folder() as opened, opened.entries() as entries:
            for entry in entries:
                if fnmatch.fnmatchcase(entry.name, pattern):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_size:
                        found[entry.name] = Identity.from_status(status)
        return found

    def text(self, name: str) -> str:
        """See `ScannedFolder.text`."""
        try:
            descriptor = RootedPath(self.root, name).open_file()
        except NotRegularFile as error:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from error
        with os.fdopen(descriptor, "rb") as file:
            return str(file.read(TEXT_BYTES), "utf-8", "replace")
