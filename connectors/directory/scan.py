"""The scan of a drop folder. It selects the files with names that match a pattern and are not temporary names.

A scan opens no file. It reads only each file's name and status, because a folder may have 100 000 files.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from connectors.beneath import Folder, LeadsOutside, RootedPath
from connectors.directory.options import DirectoryOptions
from connectors.files.identity import Identity
from connectors.files.resubmission import origin_name
from connectors.filesystem import describe_error, is_not_responding
from connectors.formats.names import holds_no_data, is_no_data_folder
from connectors.utf8 import is_utf8
from ingestd.sdk import SourceUnavailable, counted

_NAMED = 5
_REPORTS = (".receipt.json", ".reason.txt")
"""The suffixes of files that ingestd writes: receipts and reasons."""


class ScanResult(msgspec.Struct):
    """The files of one scan. A file's key is its path below the folder, with slashes.

    ``files``: matching files with content. ``empty``: matching files without content. ``skipped``: why a file or folder is
    not read. ``unmatched``: the number of regular files that no pipeline reads. ``unmatched_names``: the names of the first
    unmatched files. ``away``: why a part of the folder does not respond; empty if every part responds.
    """

    files: dict[str, Identity] = msgspec.field(default_factory=dict)
    empty: dict[str, Identity] = msgspec.field(default_factory=dict)
    skipped: dict[str, str] = msgspec.field(default_factory=dict)
    unmatched: int = 0
    unmatched_names: list[str] = msgspec.field(default_factory=list)
    away: str = ""

    @property
    def unmatched_sentence(self) -> str:
        """A sentence about the unmatched files; empty if there are none."""
        if not self.unmatched:
            return ""
        more = self.unmatched - len(self.unmatched_names)
        names = ", ".join([*self.unmatched_names, *([f"and {more} more"] if more else [])])
        files = counted(self.unmatched, "file")
        return f"No pattern matches {files} ({names}). Set pattern, and format if needed, to have them read."

    def count_unmatched(self, name: str) -> None:
        """Record a regular file that no pipeline reads."""
        self.unmatched += 1
        if len(self.unmatched_names) < _NAMED and _is_text(name, self):
            self.unmatched_names.append(name)

    def skip(self, path: str, name: str, reason: str, error: OSError) -> None:
        """Record a file or folder that can't be used because of ``error``."""
        self.skipped[name] = f"{reason}: {describe_error(error)}".removesuffix(".")
        if is_not_responding(error):
            self.away = self.away or f"{path} can't be used: {describe_error(error)}"


class Scanner:
    """Scans one folder."""

    def __init__(
        self,
        folder: Path,
        options: DirectoryOptions,
        *,
        excluded: Iterable[RootedPath],
        other_readers: Callable[[RootedPath], Collection[str]],
    ) -> None:
        """``excluded``: folders that are not scanned. ``other_readers`` returns the other pipelines that read a file."""
        self._other_readers = other_readers
        self._folder = folder
        self._recursive = options.recursive
        self._excluded = frozenset(path.name for path in excluded if path.root == folder)
        self._follows_links = options.after == "keep"
        self._rules = options.rules
        self._accepted: Mapping[str, Identity] = {}
        """The files of the last scan. Their names match, so they are not compared with the patterns again."""
        self._matches = NameFilter(options.patterns, case_sensitive=options.case_sensitive).matches

    def scan(self) -> ScanResult:
        """Scan the folder and its sub-folders. A sub-folder that can't be listed is recorded as skipped.

        Raises:
            SourceUnavailable: the folder does not exist or can't be listed.
        """
        found = ScanResult()
        try:
            with Folder.open_root(self._folder) as root:
                folders = self._list(root, "", found)
                while folders:
                    self._list_below(root, folders.pop(), folders, found)
        except OSError as error:
            raise SourceUnavailable(f"The folder {self._folder} can't be listed: {describe_error(error)}") from error
        self._accepted = found.files
        return found

    def _list_below(self, root: Folder, below: str, folders: list[str], found: ScanResult) -> None:
        try:
            with root.subfolder(below) as folder:
                folders += self._list(folder, f"{below}/", found)
        except (FileNotFoundError, NotADirectoryError):
            return  # removed or replaced by a file after the parent folder was listed
        except OSError as error:
            if error.errno != errno.ELOOP:  # replaced by a link
                found.skip(str(self._folder / below), below, "the folder can't be listed", error)

    def _list(self, folder: Folder, prefix: str, found: ScanResult) -> list[str]:
        """Add the files of one folder to ``found``, and return the sub-folders to scan."""
        below = []
        accepted = self._accepted
        with folder.entries() as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if self._enters(entry, name, found):
                        below.append(name)
                elif name in accepted:
                    self._add(entry, name, found)
                elif self._matches(entry.name, name):
                    if _is_text(name, found):
                        self._add(entry, name, found)
                elif self._is_folder_link(entry):
                    found.skipped[readable_name(name)] = "it is a link to a folder, which is not followed"
                elif entry.is_file(follow_symlinks=False) and not self._belongs_to_others(entry.name, name):
                    found.count_unmatched(name)
        return below

    def _is_folder_link(self, entry: os.DirEntry[str]) -> bool:
        """Return True if the entry is a link to a folder, and a real folder of this name would be scanned."""
        if not self._recursive or not entry.is_symlink() or is_no_data_folder(entry.name):
            return False
        try:
            return entry.is_dir()
        except OSError:  # such as a link to itself
            return False

    def _belongs_to_others(self, base: str, name: str) -> bool:
        return (
            has_temporary_name(base)
            or any(rule.is_companion(base) for rule in self._rules)
            or bool(self._other_readers(RootedPath(self._folder, name)))
        )

    def _enters(self, entry: os.DirEntry[str], name: str, found: ScanResult) -> bool:
        if not self._recursive or is_no_data_folder(entry.name) or not _is_text(name, found):
            return False
        return name not in self._excluded

    def _add(self, entry: os.DirEntry[str], name: str, found: ScanResult) -> None:
        try:
            status = self._follow_link(name, found) if entry.is_symlink() else entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return  # removed after the folder was listed
        except OSError as error:
            found.skip(str(self._folder / name), name, "its status can't be read", error)
            return
        if status is None or not stat.S_ISREG(status.st_mode):
            return
        if status.st_size == 0:
            found.empty[name] = Identity.from_status(status)
        else:
            found.files[name] = Identity.from_status(status)

    def _follow_link(self, name: str, found: ScanResult) -> os.stat_result | None:
        if not self._follows_links:
            found.skipped[name] = "it is a link, and a link can't be archived or deleted; drop the file itself"
            return None
        try:
            return RootedPath(self._folder, name).resolve().status()
        except LeadsOutside:
            found.skipped[name] = "it is a link that leads out of the folder"
            return None


def readable_name(name: str) -> str:
    r"""Return the name with ``\xff`` in place of each byte that is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_text(name: str, found: ScanResult) -> bool:
    """Return True if the name is UTF-8. Else record the file as skipped, because its name can't be sent to the service."""
    if is_utf8(name):
        return True
    found.skipped[readable_name(name)] = "its name is not UTF-8; rename it"
    return False


class NameFilter:
    """Selects files by globs. A glob with a slash must match the path below the folder, any other glob the file name."""

    def __init__(self, patterns: Sequence[str], *, case_sensitive: bool) -> None:
        flags = 0 if case_sensitive else re.IGNORECASE
        self._matches_name = _compile([pattern for pattern in patterns if "/" not in pattern], flags)
        self._matches_path = _compile([pattern for pattern in patterns if "/" in pattern], flags)

    def matches(self, base: str, name: str) -> bool:
        """Return True if the file name ``base`` with the path ``name`` matches and is not temporary."""
        if not self._matches_pattern(base, name):
            # A file of rejected rows matches if its original file matches. The two files may have different formats.
            origin = origin_name(base)
            if origin is None or not self._matches_pattern(origin, name.removesuffix(base) + origin):
                return False
        return not has_temporary_name(base)

    def _matches_pattern(self, base: str, name: str) -> bool:
        by_name, by_path = self._matches_name, self._matches_path
        return bool((by_name and by_name(base)) or (by_path and by_path(name)))


def has_temporary_name(base: str) -> bool:
    """Return True if a file with the name ``base`` (without folders) never holds a user's data."""
    return holds_no_data(base) or base.lower().endswith(_REPORTS)


def is_temporary(name: str) -> bool:
    """Return True if the path has a hidden or temporary name, or is in a folder that is never read."""
    folders, _, base = name.rpartition("/")
    return has_temporary_name(base) or any(map(is_no_data_folder, folders.split("/")))


def _compile(patterns: Sequence[str], flags: int) -> Callable[[str], re.Match[str] | None] | None:
    return _compiled(tuple(patterns), flags).match if patterns else None


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...], flags: int) -> re.Pattern[str]:
    """Return one regular expression for all patterns. It is cached, because most folders have the default patterns."""
    return re.compile("|".join(map(fnmatch.translate, patterns)), flags)
