"""What is in the folder now. Nothing is opened: a scan of 100 000 files is their names and their status."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connectors.files.identity import Identity
from connectors.files.resubmission import origin_name
from connectors.filesystem import describe_error, is_not_responding, real_path
from ingestd.sdk import SourceUnavailable

_TEMPORARY = re.compile(
    r"\.|~\$|.*\.(?:tmp|part|crdownload|filepart|receipt\.json|reason\.txt)$", re.IGNORECASE | re.DOTALL
)
"""What never is somebody's data: hidden and half-written files, and what is written about files."""
_NAMED = 5


@dataclass(slots=True)
class ScannedFile:
    """``files`` by their path below the folder, with slashes; ``empty`` and ``refused`` (with the reason) are not taken.

    ``unmatched``: how many other regular files there are, which no pattern takes; ``unmatched_names``: the first of them.
    ``away``: why a part of the folder does not respond, while the rest does; empty if all of it does.
    """

    files: dict[str, Identity] = field(default_factory=dict)
    empty: dict[str, Identity] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    unmatched: int = 0
    unmatched_names: list[str] = field(default_factory=list)
    away: str = ""

    @property
    def unmatched_sentence(self) -> str:
        """A sentence on the files that no pattern takes; empty: there are none."""
        if not self.unmatched:
            return ""
        count, more = self.unmatched, self.unmatched - len(self.unmatched_names)
        names = ", ".join([*self.unmatched_names, *([f"and {more} more"] if more else [])])
        files = "1 file is" if count == 1 else f"{count} files are"
        return f"{files} not taken because no pattern matches ({names}). Set pattern, and format if needed, to have them read."

    def refuse(self, path: str, name: str, reason: str, error: OSError) -> None:
        """Take note of what can't be looked at."""
        self.refused[name] = f"{reason}: {describe_error(error)}".removesuffix(".")
        if is_not_responding(error):
            self.away = self.away or f"{path} can't be used: {describe_error(error)}"


class Scanner:
    """Looks through one folder."""

    def __init__(
        self,
        folder: Path,
        patterns: Sequence[str],
        *,
        recursive: bool,
        excluded: Iterable[Path],
        links: bool,
        case_sensitive: bool = False,
        is_companion: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """``is_companion``: whether a name is that of a file which belongs to others, such as a marker."""
        self._folder = folder
        self._recursive = recursive
        self._excluded = frozenset(map(real_path, excluded))
        self._links = links
        self._is_companion = is_companion
        flags = 0 if case_sensitive else re.IGNORECASE
        self._by_name = _any_of([pattern for pattern in patterns if "/" not in pattern], flags)
        self._by_path = _any_of([pattern for pattern in patterns if "/" in pattern], flags)

    def _matches(self, base: str, name: str) -> bool:
        if not self._fits(base, name):
            # Rejected rows that come back are wanted where their file was, whatever format they are written in.
            origin = origin_name(base)
            if origin is None or not self._fits(origin, name.removesuffix(base) + origin):
                return False
        return not _TEMPORARY.match(base)

    def _fits(self, base: str, name: str) -> bool:
        return bool((self._by_name and self._by_name(base)) or (self._by_path and self._by_path(name)))

    def scan(self) -> ScannedFile:
        """All files that match.

        Raises:
            SourceUnavailable: the folder is not there or can't be listed.
        """
        found = ScannedFile()
        try:
            folders = self._list(str(self._folder), "", found)
        except OSError as error:
            raise SourceUnavailable(f"The folder {self._folder} can't be listed: {describe_error(error)}") from error
        while folders:
            below = folders.pop()
            path = os.path.join(self._folder, below)  # noqa: PTH118 - speed
            try:
                folders += self._list(path, f"{below}/", found)
            except (FileNotFoundError, NotADirectoryError):
                continue  # gone, or replaced by a file, since its parent was listed
            except OSError as error:
                found.refuse(path, below, "the folder can't be listed", error)
        return found

    def _list(self, folder: str, prefix: str, found: ScannedFile) -> list[str]:
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
                elif entry.is_file(follow_symlinks=False) and not self._is_temporary(entry.name):
                    found.unmatched += 1
                    if len(found.unmatched_names) < _NAMED and _is_text(name, found):
                        found.unmatched_names.append(name)
        return below

    def _is_temporary(self, base: str) -> bool:
        return bool(_TEMPORARY.match(base)) or self._is_companion(base)

    def _enters(self, entry: os.DirEntry[str], name: str, found: ScannedFile) -> bool:
        if not self._recursive or entry.name.startswith(".") or not _is_text(name, found):
            return False
        return real_path(Path(entry.path)) not in self._excluded

    def _take(self, entry: os.DirEntry[str], name: str, found: ScannedFile) -> None:
        if not _is_text(name, found):
            return
        try:
            status = self._through_link(entry, name, found) if entry.is_symlink() else entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # gone since the folder was listed
        except OSError as error:
            found.refuse(entry.path, name, "its status can't be read", error)
            return
        if status is None or not stat.S_ISREG(status.st_mode):
            return
        if status.st_size == 0:
            found.empty[name] = Identity.from_status(status)
        else:
            found.files[name] = Identity.from_status(status)

    def _through_link(self, entry: os.DirEntry[str], name: str, found: ScannedFile) -> os.stat_result | None:
        if not self._links:
            found.refused[name] = "it is a link, and a link can't be archived or deleted; drop the file itself"
            return None
        if not is_inside(Path(entry.path), self._folder):
            found.refused[name] = "it is a link that leads out of the folder"
            return None
        return entry.stat()


def is_temporary(name: str) -> bool:
    """Whether a path has a name, or is in a folder with one, that says that it is hidden or will not stay."""
    folders, _, base = name.rpartition("/")
    return bool(_TEMPORARY.match(base)) or any(folder.startswith(".") for folder in folders.split("/"))


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path stays in the folder once all links are followed."""
    return real_path(path).is_relative_to(real_path(folder))


def readable_name(name: str) -> str:
    r"""The name as it is; of one that is not UTF-8 with the other bytes spelled out, as ``\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_text(name: str, found: ScannedFile) -> bool:
    """Whether a name is UTF-8; one that is not can't be told to the service, so it is refused under a readable spelling."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        found.refused[readable_name(name)] = "its name is not UTF-8; rename it"
        return False
    return True


def _any_of(patterns: Sequence[str], flags: int) -> Callable[[str], re.Match[str] | None] | None:
    return re.compile("|".join(map(fnmatch.translate, patterns)), flags).match if patterns else None
