"""A drop folder on a server. It gives the readiness rules access to a remote store."""

from __future__ import annotations

import fnmatch
import io
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, cast

from connectors.directory.readiness.rule import TEXT_BYTES
from connectors.directory.scan import NameFilter, ScanResult, has_temporary_name, is_temporary
from connectors.files.file_batches import OpenFile
from connectors.files.identity import Identity
from connectors.filesystem import temporary_file
from connectors.formats.names import is_no_data_folder
from connectors.remote.address import join
from connectors.remote.options import RemoteOptions
from connectors.remote.store import RemoteEntry, RemoteStore, find_name_fault
from ingestd.sdk import SourceBroken, SourceUnavailable, note_progress

_MOST_SKIPPED = 1_000


class RemoteDropFile:
    """A file of a server, read from a local copy, which is an unnamed temporary file. Implements `DropFile`."""

    def __init__(self, folder: RemoteFolder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._seen: Identity | None = None
        self.path = Path(folder.shown(name))

    def status(self) -> Identity:
        """See `DropFile.status`. If the last listing has a version (ETag) of the file, no request is sent."""
        folder = self._folder
        self._seen = folder.listed_version(self._name) or folder.store.status(folder.path(self._name))
        return self._seen

    def open(self) -> OpenFile:
        """See `DropFile.open`. If `status` was called before, the content has the identity that `status` returned.

        Raises:
            RemoteChanged: the file has another identity, or changed while it was copied.
        """
        folder = self._folder
        seen = self._seen or self.status()
        most = folder.options.max_bytes
        if seen.size > most:
            raise SourceBroken(
                f"{self._name} has {seen.size} bytes, more than max_bytes ({most}). Raise max_bytes to read it."
            )
        return folder.open(folder.path(self._name), self._name, seen)


class RemoteFolder:
    """A folder of a server. Implements `DropFolder`. ``excluded``: paths of the server that are not listed.

    ``other_readers``: see `SourceContext`; its argument is the address of a file.
    """

    def __init__(
        self,
        options: RemoteOptions,
        store: RemoteStore,
        *,
        excluded: Collection[str],
        other_readers: Callable[[str], Collection[str]] = lambda _: (),
    ) -> None:
        self.options = options
        self._other_readers = other_readers
        self.store = store
        self._address = options.address
        self._excluded = frozenset(excluded)
        self._filter = NameFilter(options.patterns, case_sensitive=options.case_sensitive)
        self._companions: dict[str, Identity] = {}
        self._found = ScanResult()
        self.root = Path(self._address.display(self._address.folder))

    def path(self, name: str) -> str:
        """Return the path of a name on the server."""
        return join(self._address.folder, name)

    def shown(self, name: str) -> str:
        """Return the address of a name, for messages."""
        return self._address.display(self.path(name))

    def readers_of(self, path: str) -> Collection[str]:
        """Return the names of the other pipelines that read the file at a path of the server."""
        return self._other_readers(self._address.display(path))

    def check(self) -> None:
        """See `DropFolder.check`."""
        self.store.check(self._address.folder)
        if self.options.canary:
            self._check_canary()

    def _check_canary(self) -> None:
        try:
            self.store.status(self.path(self.options.canary))
        except FileNotFoundError:
            raise SourceUnavailable(
                f"{self.shown(self.options.canary)} is missing (canary), so the folder counts as not mounted. Mount its share."
            ) from None

    def scan(self) -> ScanResult:
        """See `DropFolder.scan`. An incomplete listing is an error.

        Raises:
            SourceBroken: there are more files than max_files.
        """
        if self.options.canary:
            self._check_canary()
        listing = _Listing(self)
        self.store.list_files(self._address.folder, listing.take, self._enters)
        self._companions = listing.companions
        self._found = listing.found
        return listing.found

    def listed_version(self, name: str) -> Identity | None:
        """Return a file's identity in the last listing; None if the file is not in it, or its identity has no version."""
        found = self._found.files.get(name) or self._found.empty.get(name)
        return found if found is not None and found.version else None

    def _enters(self, name: str) -> bool:
        base = name.rpartition("/")[2]
        return self.options.recursive and not is_no_data_folder(base) and self.path(name) not in self._excluded

    def takes(self, name: str) -> bool:
        """Return True if the source reads the folders of ``name``. An object store lists all folders, so they are filtered."""
        folders = name.split("/")[:-1]
        return all(self._enters("/".join(folders[: count + 1])) for count in range(len(folders)))

    def matches(self, name: str) -> bool:
        """Return True if the patterns of the source match the name."""
        return self._filter.matches(name.rpartition("/")[2], name)

    def is_companion(self, base: str) -> bool:
        """Return True for the name of a file that belongs to other files, such as a marker."""
        return any(rule.is_companion(base) for rule in self.options.rules)

    def file(self, name: str) -> RemoteDropFile:
        """See `DropFolder.file`."""
        if fault := find_name_fault(name):
            raise SourceBroken(f"{name!r} can't be read: {fault}.")
        return RemoteDropFile(self, name)

    def open(self, path: str, name: str, expected: Identity | None = None) -> OpenFile:
        """Copy a file of the server to an unnamed local file, and open it."""
        copy = temporary_file()
        try:
            identity = self.store.fetch(path, cast("BinaryIO", copy), expected=expected)
            copy.seek(0)
            file = copy.detach()
        except BaseException:
            copy.close()
            raise
        return OpenFile(name=name, file=cast("io.FileIO", file), identity=identity, owner="", is_private=True)

    def kind(self, name: str) -> Literal["file", "other", "absent"]:
        """See `DropFolder.kind`."""
        if find_name_fault(name):
            return "absent"
        try:
            self.store.status(self.path(name))
        except FileNotFoundError:
            return "absent"
        return "file"

    def companion(self, name: str) -> Identity | None:
        """See `ScannedFolder.companion`. Return the companion of the last scan."""
        return self._companions.get(name)

    def companions(self, folder: str, pattern: str) -> Mapping[str, Identity]:
        """See `ScannedFolder.companions`. Return the companions of the last scan."""
        above = {name.rpartition("/")[::2]: identity for name, identity in self._companions.items()}
        return {
            base: identity
            for (parent, base), identity in above.items()
            if parent == folder.rstrip("/") and identity.size and fnmatch.fnmatchcase(base, pattern)
        }

    def text(self, name: str) -> str:
        """See `ScannedFolder.text`."""
        content = io.BytesIO()
        self.store.fetch(self.path(name), content, most=TEXT_BYTES)
        return content.getvalue().decode("utf-8", "replace")

    @contextmanager
    def open_scanned(self, name: str, identity: Identity) -> Iterator[BinaryIO]:
        """See `ScannedFolder.open_scanned`. The context opens an unnamed local copy."""
        with temporary_file() as copy:
            self.store.fetch(self.path(name), cast("BinaryIO", copy), expected=identity)
            copy.seek(0)
            yield cast("BinaryIO", copy)


class _Listing:
    """Collects the files of one listing. max_files bounds the memory."""

    def __init__(self, folder: RemoteFolder) -> None:
        self._folder = folder
        self._has_rules = bool(folder.options.ready)
        self._count = 0
        self._caller = threading.get_ident()
        self.found = ScanResult()
        self.companions: dict[str, Identity] = {}

    def take(self, listed: RemoteEntry) -> None:
        self._count += 1
        note_progress(self._caller)
        if self._count > self._folder.options.max_files:
            raise SourceBroken(
                f"{self._folder.root} has more than {self._folder.options.max_files} files (max_files). Move old files away, or"
                " raise max_files."
            )
        name, found, folder = listed.name, self.found, self._folder
        if listed.fault:
            if len(found.skipped) < _MOST_SKIPPED and not is_temporary(name):
                found.skipped[_printable(name)] = listed.fault
            return
        if "/" in name and not folder.takes(name):
            return
        base = name.rpartition("/")[2]
        if self._has_rules and folder.is_companion(base):
            self.companions[name] = listed.identity
        elif not folder.matches(name):
            if not has_temporary_name(base) and not folder.readers_of(folder.path(name)):
                found.count_unmatched(name)
        elif listed.identity.size == 0:
            found.empty[name] = listed.identity
        else:
            found.files[name] = listed.identity


def _printable(name: str) -> str:
    return name.encode("unicode_escape").decode("ascii")[:300] if not name.isprintable() else name[:300]
