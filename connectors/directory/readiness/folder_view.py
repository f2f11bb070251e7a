"""What rules may find out about files and about what lies beside them; what is costly, once for each content."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from connectors.files.identity import Identity
from connectors.formats import Format

T = TypeVar("T")

_TEXT_BYTES = 2**20
"""Nobody's sidecar or manifest is larger; what is beyond is not looked at."""


@dataclass(slots=True)
class ContentCache:
    """What was found out about files, as long as they stay the same and somebody asks."""

    _of: dict[str, tuple[Identity, dict[str, object]]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def cached(self, name: str, identity: Identity, what: str, find: Callable[[], T]) -> T:
        """What ``find`` returned for this content, or returns now."""
        self._used.add(name)
        seen = self._of.get(name)
        if seen is None or not seen[0].same_content(identity):
            seen = self._of[name] = (identity, {})
        if what not in seen[1]:
            seen[1][what] = find()
        return cast("T", seen[1][what])

    def forget_unused(self) -> None:
        """Forget what nobody has asked for since the last time."""
        self._of = {name: seen for name, seen in self._of.items() if name in self._used}
        self._used = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFolderView:
    """The folder at one scan; implements `Surroundings`."""

    folder: Path
    files: Mapping[str, Identity]
    known: ContentCache

    def matching(self, folder: str, pattern: str) -> Mapping[str, Identity]:
        """See `Surroundings.matching`."""
        found = {}
        with os.scandir(self.folder / folder) as entries:
            for entry in entries:
                if fnmatch.fnmatchcase(entry.name, pattern):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode) and status.st_size:
                        found[entry.name] = Identity.from_status(status)
        return found

    def text(self, name: str, identity: Identity) -> str:
        """See `Surroundings.text`."""
        return self.known.cached(name, identity, "text", lambda: read_text(self.folder / name))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFileView:
    """One file at one scan; implements `FileView`. ``format_for`` gives the format of a name."""

    name: str
    folder: Path
    identity: Identity
    now: float
    known: ContentCache
    format_for: Callable[[str], Format]

    @property
    def base(self) -> str:
        """See `FileView.base`."""
        return self.name.rpartition("/")[2]

    @property
    def path(self) -> Path:
        """See `FileView.path`."""
        return self.folder / self.name

    @property
    def file_format(self) -> Format:
        """See `FileView.file_format`."""
        return self.format_for(self.name)

    def beside(self, base: str) -> Identity | None:
        """See `FileView.beside`."""
        try:
            status = self.path.with_name(base).lstat()
        except FileNotFoundError:
            return None
        return Identity.from_status(status) if stat.S_ISREG(status.st_mode) else None

    def text_beside(self, base: str) -> str:
        """See `FileView.text_beside`."""
        return read_text(self.path.with_name(base))

    def sha256(self) -> str:
        """See `FileView.sha256`."""
        return self.cached("sha256", self._sha256)

    def _sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def cached(self, what: str, find: Callable[[], T]) -> T:
        """See `FileView.cached`."""
        return self.known.cached(self.name, self.identity, what, find)


def read_text(path: Path) -> str:
    """The beginning of a small text file; bytes that are no UTF-8 can't be part of a name that is wanted."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        data: bytes = file.read(_TEXT_BYTES)
    return data.decode("utf-8", "replace")
