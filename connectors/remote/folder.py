"""A drop folder on a server: what the rules for files see of a remote store."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar, cast

import msgspec

from connectors.directory.name_filter import NameFilter, has_temporary_name, is_temporary
from connectors.directory.readiness.folder_view import ContentCache
from connectors.directory.scan import ScanResult
from connectors.files.file_batches import OpenFile
from connectors.files.identity import Identity
from connectors.formats import Format
from connectors.formats.names import is_no_data_folder
from connectors.remote.address import join
from connectors.remote.options import RemoteOptions
from connectors.remote.store import RemoteEntry, RemoteStore, find_name_fault
from ingestd.sdk import SourceBroken, SourceUnavailable, note_progress

T = TypeVar("T")

_TEXT_BYTES = 2**20
"""The part of a sidecar or manifest that is read. No real one is larger."""
_MOST_SKIPPED = 1_000


class RemoteDropFile:
    """A file of a server. Implements `DropFile`. It is read as a copy on the local disk, which has no name."""

    def __init__(self, folder: RemoteFolder, name: str) -> None:
        self._folder = folder
        self._name = name
        self._seen: Identity | None = None
        self.path = Path(folder.shown(name))

    def status(self) -> Identity:
        """See `DropFile.status`. What the last listing states is not requested again if it has a version, such as an ETag."""
        folder = self._folder
        self._seen = folder.listed_version(self._name) or folder.store.status(folder.path(self._name))
        return self._seen

    def open(self) -> OpenFile:
        """See `DropFile.open`. The content is that of the status, if it was requested before.

        Raises:
            RemoteChanged: it is another content, or changed while it was copied.
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

    ``other_readers``: see `SourceContext`; a file is named by its address.
    """

    def __init__(
        self,
        options: RemoteOptions,
        store: RemoteStore,
        *,
        excluded: Collection[str],
        format_for: Callable[[str], Format],
        other_readers: Callable[[str], Collection[str]] = lambda _: (),
    ) -> None:
        self.options = options
        self._other_readers = other_readers
        self.store = store
        self._address = options.address
        self._format_for = format_for
        self._excluded = frozenset(excluded)
        self._filter = NameFilter(options.patterns, case_sensitive=options.case_sensitive)
        self._companions: dict[str, Identity] = {}
        self._found = ScanResult()
        self.root = Path(self._address.display(self._address.folder))

    def path(self, name: str) -> str:
        """Return the path on the server of a name."""
        return join(self._address.folder, name)

    def shown(self, name: str) -> str:
        """Return the address of a name, for sentences."""
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
                f"{self.shown(self.options.canary)} is missing (canary), so the folder counts as away. Mount its share there."
            ) from None

    def scan(self) -> ScanResult:
        """See `DropFolder.scan`. A listing that was cut is no result.

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
        """Return the identity of a file in the last listing; None if it is not there, or without a version."""
        found = self._found.files.get(name) or self._found.empty.get(name)
        return found if found is not None and found.version else None

    def _enters(self, name: str) -> bool:
        base = name.rpartition("/")[2]
        return self.options.recursive and not is_no_data_folder(base) and self.path(name) not in self._excluded

    def takes(self, name: str) -> bool:
        """Return True if the folders of the name are listed; an object store lists all of them."""
        folders = name.split("/")[:-1]
        return all(self._enters("/".join(folders[: count + 1])) for count in range(len(folders)))

    def matches(self, name: str) -> bool:
        """Return True if the file is read."""
        return self._filter.matches(name.rpartition("/")[2], name)

    def is_companion(self, base: str) -> bool:
        """Return True for the name of a file that belongs to others, such as a marker."""
        return any(rule.is_companion(base) for rule in self.options.rules)

    def file(self, name: str) -> RemoteDropFile:
        """See `DropFolder.file`."""
        if fault := find_name_fault(name):
            raise SourceBroken(f"{name!r} can't be read: {fault}.")
        return RemoteDropFile(self, name)

    def open(self, path: str, name: str, expected: Identity | None = None) -> OpenFile:
        """Copy a file of the server to the local disk and open the copy, which has no name there."""
        copy = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
        try:
            identity = self.store.fetch(path, cast("BinaryIO", copy), expected=expected)
            copy.seek(0)
        except BaseException:
            copy.close()
            raise
        return OpenFile(name=name, file=copy, identity=identity, owner="", is_private=True)

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
        """Return the identity of a companion at the last scan; None if there is none."""
        return self._companions.get(name)

    def companions(self, folder: str) -> Iterator[tuple[str, Identity]]:
        """Yield the names in one sub-folder (empty: the folder itself) of the companions of the last scan."""
        for name, identity in self._companions.items():
            above, _, base = name.rpartition("/")
            if above == folder.rstrip("/"):
                yield base, identity

    def text(self, name: str) -> str:
        """Return the beginning of a small text file."""
        content = io.BytesIO()
        self.store.fetch(self.path(name), content, most=_TEXT_BYTES)
        return content.getvalue().decode("utf-8", "replace")

    def folder_view(self, files: Mapping[str, Identity], cache: ContentCache) -> _FolderView:
        """See `Views.folder_view`."""
        return _FolderView(folder=self, files=files, cache=cache)

    def file_view(self, name: str, identity: Identity, now: float, cache: ContentCache) -> _FileView:
        """See `Views.file_view`."""
        return _FileView(name=name, folder=self, identity=identity, now=now, cache=cache, format_for=self._format_for)


class _Listing:
    """Collects one listing; its memory is bounded by max_files."""

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
                f"{self._folder.root} has more than {self._folder.options.max_files} files (max_files). Move old ones away, or"
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


class _FolderView(msgspec.Struct, frozen=True, kw_only=True):
    """The folder at one scan. Implements `FolderView`."""

    folder: RemoteFolder
    files: Mapping[str, Identity]
    cache: ContentCache

    def matching(self, folder: str, pattern: str) -> Mapping[str, Identity]:
        return {
            base: identity
            for base, identity in self.folder.companions(folder)
            if identity.size and fnmatch.fnmatchcase(base, pattern)
        }

    def text(self, name: str, identity: Identity) -> str:
        return self.cache.get(name, identity, "text", lambda: self.folder.text(name))


class _FileView(msgspec.Struct, frozen=True, kw_only=True):
    """One file at one scan. Implements `FileView`."""

    name: str
    folder: RemoteFolder
    identity: Identity
    now: float
    cache: ContentCache
    format_for: Callable[[str], Format]

    @property
    def base(self) -> str:
        return self.name.rpartition("/")[2]

    @contextmanager
    def open_file(self) -> Iterator[BinaryIO]:
        with tempfile.TemporaryFile() as copy:
            self.folder.store.fetch(self.folder.path(self.name), cast("BinaryIO", copy), expected=self.identity)
            copy.seek(0)
            yield cast("BinaryIO", copy)

    @property
    def format(self) -> Format:
        return self.format_for(self.name)

    def _beside(self, base: str) -> str:
        return self.name[: len(self.name) - len(self.base)] + base

    def sibling(self, base: str) -> Identity | None:
        return self.folder.companion(self._beside(base))

    def sibling_text(self, base: str) -> str:
        return self.folder.text(self._beside(base))

    def sha256(self) -> str:
        return self.cached("sha256", self._sha256)

    def _sha256(self) -> str:
        with self.open_file() as file:
            return hashlib.file_digest(cast("io.BufferedReader", file), "sha256").hexdigest()

    def cached(self, key: str, compute: Callable[[], T]) -> T:
        return self.cache.get(self.name, self.identity, key, compute)
