"""What is in the folder now. Nothing is opened: a scan of 100 000 files is their names and their status."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connectors.files.identity import Identity, identity_of
from connectors.files.returning import origin_name
from ingestd.sdk import SourceUnavailable

_PASSING = re.compile(
    r"\.|~\$|.*\.(?:tmp|part|crdownload|filepart|receipt\.json|reason\.txt)$", re.IGNORECASE | re.DOTALL
)
"""What never is somebody's data: hidden and half-written files, and what is written about files."""


@dataclass(slots=True)
class Found:
    """``files`` by their path below the folder, with slashes; ``empty`` and ``refused`` (with the reason) are not taken."""

    files: dict[str, Identity] = field(default_factory=dict)
    empty: dict[str, Identity] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class Scanner:
    """Looks through one folder."""

    def __init__(
        self, folder: Path, patterns: Sequence[str], *, recursive: bool, excluded: Iterable[Path], links: bool
    ) -> None:
        self._folder = folder
        self._recursive = recursive
        self._excluded = frozenset(path.resolve() for path in excluded)
        self._links = links
        self._by_name = _any_of([pattern for pattern in patterns if "/" not in pattern])
        self._by_path = _any_of([pattern for pattern in patterns if "/" in pattern])

    def _matches(self, base: str, name: str) -> bool:
        if not self._fits(base, name):
            # Rejected rows that come back are wanted where their file was, whatever format they are written in.
            origin = origin_name(base)
            if origin is None or not self._fits(origin, name.removesuffix(base) + origin):
                return False
        return not _PASSING.match(base)

    def _fits(self, base: str, name: str) -> bool:
        return bool((self._by_name and self._by_name(base)) or (self._by_path and self._by_path(name)))

    def scan(self) -> Found:
        """All files that match.

        Raises:
            SourceUnavailable: the folder is not there or can't be listed.
        """
        found = Found()
        try:
            folders = self._list(str(self._folder), "", found)
        except OSError as error:
            raise SourceUnavailable(
                f"The folder {self._folder} can't be listed: {error.strerror}. Create or mount it, and allow reading."
            ) from error
        while folders:
            below = folders.pop()
            try:
                folders += self._list(os.path.join(self._folder, below), f"{below}/", found)  # noqa: PTH118 - speed
            except FileNotFoundError:
                continue  # gone since its parent was listed
            except OSError as error:
                found.refused[below] = f"the folder can't be listed: {error.strerror}"
        return found

    def _list(self, folder: str, prefix: str, found: Found) -> list[str]:
        """Take in the files of one folder; its sub-folders, where they are wanted."""
        below = []
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if self._enters(entry, name, found):
                        below.append(name)
                elif self._matches(entry.name, name):
                    self._take(entry, name, found)
        return below

    def _enters(self, entry: os.DirEntry[str], name: str, found: Found) -> bool:
        if not self._recursive or entry.name.startswith(".") or not _is_text(name, found):
            return False
        return Path(entry.path).resolve() not in self._excluded

    def _take(self, entry: os.DirEntry[str], name: str, found: Found) -> None:
        if not _is_text(name, found):
            return
        try:
            status = self._through_link(entry, name, found) if entry.is_symlink() else entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # gone since the folder was listed
        except OSError as error:
            found.refused[name] = f"its status can't be read: {error.strerror}"
            return
        if status is None or not stat.S_ISREG(status.st_mode):
            return
        if status.st_size == 0:
            found.empty[name] = identity_of(status)
        else:
            found.files[name] = identity_of(status)

    def _through_link(self, entry: os.DirEntry[str], name: str, found: Found) -> os.stat_result | None:
        if not self._links:
            found.refused[name] = "it is a link, and a link can't be archived or deleted; drop the file itself"
            return None
        if not is_inside(Path(entry.path), self._folder):
            found.refused[name] = "it is a link that leads out of the folder"
            return None
        return entry.stat()


def is_passing(name: str) -> bool:
    """Whether a path has a name, or is in a folder with one, that says that it is hidden or will not stay."""
    folders, _, base = name.rpartition("/")
    return bool(_PASSING.match(base)) or any(folder.startswith(".") for folder in folders.split("/"))


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path stays in the folder once all links are followed."""
    return path.resolve().is_relative_to(folder.resolve())


def _is_text(name: str, found: Found) -> bool:
    """Whether a name is UTF-8; one that is not can't be told to the service, so it is refused under a readable spelling."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        readable = os.fsencode(name).decode("utf-8", "backslashreplace")
        found.refused[readable] = "its name is not UTF-8; rename it"
        return False
    return True


def _any_of(patterns: Sequence[str]) -> Callable[[str], re.Match[str] | None] | None:
    return re.compile("|".join(map(fnmatch.translate, patterns))).match if patterns else None
