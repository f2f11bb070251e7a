"""A drop folder on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from connectors.directory.options import DirectoryOptions
from connectors.directory.readiness.folder_view import ContentCache, DiskFileView, DiskFolderView
from connectors.directory.scan import Scanner, ScanResult, is_inside
from connectors.files.file_batches import OpenFile, open_file
from connectors.files.identity import Identity
from connectors.filesystem import translate_errors
from connectors.formats import Format
from connectors.mounts import MountGuard
from ingestd.sdk import SourceBroken


class LocalFile(msgspec.Struct, frozen=True):
    """A file on disk. Implements `DropFile`."""

    path: Path
    name: str

    def status(self) -> Identity:
        """See `DropFile.status`."""
        return Identity.from_status(self.path.stat())

    def open(self) -> OpenFile:
        """See `DropFile.open`."""
        return open_file(self.path, self.name)


class LocalFolder:
    """A folder on disk. Implements `DropFolder`. ``excluded``: folders that no scan enters. ``is_read``: see `SourceContext`."""

    def __init__(
        self,
        options: DirectoryOptions,
        folder: Path,
        *,
        excluded: Iterable[Path],
        format_for: Callable[[str], Format],
        is_read: Callable[[str], bool],
    ) -> None:
        rules = options.rules
        self.root = folder
        self._format_for = format_for
        self._guard = MountGuard(folder, options.canary)
        self._scanner = Scanner(
            folder,
            options.patterns,
            recursive=options.recursive,
            excluded=excluded,
            links=options.after == "keep",
            case_sensitive=options.case_sensitive,
            is_companion=lambda base: any(rule.is_companion(base) for rule in rules),
            is_read=is_read,
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
        """See `DropFolder.file`. Links must not lead out of the folder.

        Raises:
            SourceUnavailable: its file system does not respond.
        """
        path = self.root / name
        if _may_lead_outside(self.root, name):
            with translate_errors(path):
                inside = is_inside(path, self.root)
            if not inside:
                raise SourceBroken(f"{name} leads out of the folder {self.root}; it is not read.")
        return LocalFile(path, name)

    def kind(self, name: str) -> Literal["file", "other", "absent"]:
        """See `DropFolder.kind`."""
        path = self.root / name
        if not is_inside(path, self.root) or not path.exists():
            return "absent"
        return "file" if path.is_file() else "other"

    def folder_view(self, files: Mapping[str, Identity], cache: ContentCache) -> DiskFolderView:
        """See `Views.folder_view`."""
        return DiskFolderView(folder=self.root, files=files, cache=cache)

    def file_view(self, name: str, identity: Identity, now: float, cache: ContentCache) -> DiskFileView:
        """See `Views.file_view`."""
        return DiskFileView(
            name=name, folder=self.root, identity=identity, now=now, cache=cache, format_for=self._format_for
        )


def _may_lead_outside(folder: Path, name: str) -> bool:
    """Return whether a part of the name below the folder is a link, which takes less time than resolving all of the path."""
    parts = name.split("/")
    path = str(folder)
    for part in parts:
        path = f"{path}/{part}"
        if part == ".." or os.path.islink(path):  # noqa: PTH114 - speed
            return True
    return False
