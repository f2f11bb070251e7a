"""A drop folder on disk."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from connectors.beneath import Folder, LeadsOutside, RootedPath
from connectors.directory.options import DirectoryOptions
from connectors.directory.readiness.folder_view import ContentCache, DiskFileView, DiskFolderView
from connectors.directory.scan import Scanner, ScanResult
from connectors.files.file_batches import OpenFile, open_file
from connectors.files.identity import Identity
from connectors.filesystem import translate_errors
from connectors.formats import Format
from connectors.mounts import MountGuard
from ingestd.sdk import SourceBroken


class LocalFile(msgspec.Struct, frozen=True):
    """A file on disk. Implements `DropFile`. ``place``: where it is, after its links are resolved."""

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
    """A folder on disk. Implements `DropFolder`. ``excluded``: folders that no scan enters. ``other_readers``: see `Scanner`."""

    def __init__(
        self,
        options: DirectoryOptions,
        folder: Path,
        *,
        excluded: Iterable[RootedPath],
        format_for: Callable[[str], Format],
        other_readers: Callable[[RootedPath], Collection[str]],
    ) -> None:
        rules = options.rules
        self.root = folder
        self._format_for = format_for
        self._guard = MountGuard(folder, options.canary)
        self._follows_links = options.after == "keep"
        self._scanner = Scanner(
            folder,
            options.patterns,
            recursive=options.recursive,
            excluded=excluded,
            links=self._follows_links,
            case_sensitive=options.case_sensitive,
            is_companion=lambda base: any(rule.is_companion(base) for rule in rules),
            other_readers=other_readers,
        )

    def check(self) -> None:
        """See `DropFolder.check`."""
        self._guard.check()

    def scan(self) -> ScanResult:
        """See `DropFolder.scan`."""
        self._guard.check()
        found = self._scanner.scan()
        self._guard.check()  # a share that was unmounted meanwhile left an empty folder
        return found

    def file(self, name: str) -> LocalFile:
        """See `DropFolder.file`. With ``after: keep`` links are followed, and must not lead out of the folder.

        Raises:
            SourceUnavailable: its file system does not respond.
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
        """Return True if something has the name below the folder, or the folder itself is missing.

        Every error except a missing file is raised, because it proves nothing.
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

    def folder_view(self, files: Mapping[str, Identity], cache: ContentCache) -> DiskFolderView:
        """See `Views.folder_view`."""
        return DiskFolderView(folder=self.root, files=files, cache=cache)

    def file_view(self, name: str, identity: Identity, now: float, cache: ContentCache) -> DiskFileView:
        """See `Views.file_view`."""
        return DiskFileView(
            name=name,
            folder=self.root,
            locate=self._place,
            identity=identity,
            now=now,
            cache=cache,
            format_for=self._format_for,
        )
