"""The views of files and of the folder for rules.

Expensive results are computed once for each content.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

import msgspec

from connectors.beneath import NotRegularFile, RootedPath
from connectors.files.identity import Identity
from connectors.formats import Format

T = TypeVar("T")

_TEXT_BYTES = 2**20
"""The part of a sidecar or manifest that is read. No real one is larger."""


class ContentCache(msgspec.Struct):
    """Results about files, kept while the content is unchanged and the results are used."""

    _results: dict[str, tuple[Identity, dict[str, object]]] = msgspec.field(default_factory=dict)
    _used: set[str] = msgspec.field(default_factory=set)

    def get(self, name: str, identity: Identity, key: str, compute: Callable[[], T]) -> T:
        """Return the result for this content; call ``compute`` if there is none yet."""
        self._used.add(name)
        seen = self._results.get(name)
        if seen is None or not seen[0].has_same_content(identity):
            seen = self._results[name] = (identity, {})
        if key not in seen[1]:
            seen[1][key] = compute()
        return cast("T", seen[1][key])

    def forget_unused(self) -> None:
        """Forget the results of files that were not requested since the last call."""
        self._results = {name: seen for name, seen in self._results.items() if name in self._used}
        self._used = set()


class DiskFolderView(msgspec.Struct, frozen=True, kw_only=True):
    """The folder at one scan. Implements `FolderView`."""

    folder: Path
    files: Mapping[str, Identity]
    cache: ContentCache

    def matching(self, folder: str, pattern: str) -> Mapping[str, Identity]:
        """See `FolderView.matching`."""
        found = {}
        with (RootedPath(self.folder) / folder.rstrip("/")).open_folder() as opened, opened.entries() as entries:
            for entry in entries:
                if fnmatch.fnmatchcase(entry.name, pattern):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_size:
                        found[entry.name] = Identity.from_status(status)
        return found

    def text(self, name: str, identity: Identity) -> str:
        """See `FolderView.text`."""
        return self.cache.get(name, identity, "text", lambda: read_text(RootedPath(self.folder, name)))


class DiskFileView(msgspec.Struct, frozen=True, kw_only=True):
    """One file at one scan. Implements `FileView`. ``format_for`` returns the format of a name.

    ``locate`` returns where the file of a name is, after its links are resolved.
    """

    name: str
    folder: Path
    locate: Callable[[str], RootedPath]
    identity: Identity
    now: float
    cache: ContentCache
    format_for: Callable[[str], Format]

    @property
    def base(self) -> str:
        """See `FileView.base`."""
        return self.name.rpartition("/")[2]

    @contextmanager
    def open_file(self) -> Iterator[BinaryIO]:
        """See `FileView.open_file`."""
        with os.fdopen(self.locate(self.name).open_file(), "rb") as file:
            if not Identity.from_status(os.fstat(file.fileno())).has_same_content(self.identity):
                raise FileNotFoundError(errno.ENOENT, "It was replaced or written to since it was listed", self.name)
            yield cast("BinaryIO", file)

    def _beside(self, base: str) -> RootedPath:
        return RootedPath(self.folder, self.name).with_base(base)

    @property
    def format(self) -> Format:
        """See `FileView.format`."""
        return self.format_for(self.name)

    def sibling(self, base: str) -> Identity | None:
        """See `FileView.sibling`."""
        try:
            status = self._beside(base).status()
        except FileNotFoundError:
            return None
        return Identity.from_status(status) if stat.S_ISREG(status.st_mode) else None

    def sibling_text(self, base: str) -> str:
        """See `FileView.sibling_text`."""
        return read_text(self._beside(base))

    def sha256(self) -> str:
        """See `FileView.sha256`."""
        return self.cached("sha256", self._sha256)

    def _sha256(self) -> str:
        with self.open_file() as file:
            return hashlib.file_digest(cast("io.BufferedReader", file), "sha256").hexdigest()

    def cached(self, key: str, compute: Callable[[], T]) -> T:
        """See `FileView.cached`."""
        return self.cache.get(self.name, self.identity, key, compute)


def read_text(path: RootedPath) -> str:
    """Return the beginning of a small text file.

    Bytes that are not UTF-8 are replaced, because no expected name has any.
    """
    try:
        descriptor = path.open_file()
    except NotRegularFile as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    with os.fdopen(descriptor, "rb") as file:
        data: bytes = file.read(_TEXT_BYTES)
    return data.decode("utf-8", "replace")
