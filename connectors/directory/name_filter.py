"""The names of files that are read: those that match a pattern and are not temporary."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from connectors.files.resubmission import origin_name
from connectors.formats.names import holds_no_data, is_no_data_folder

_REPORTS = (".receipt.json", ".reason.txt")
"""The ends of the names of what ingestd writes about files."""


class NameFilter:
    """Selects names by globs; a glob with a slash is compared with the path below the folder."""

    def __init__(self, patterns: Sequence[str], *, case_sensitive: bool) -> None:
        flags = 0 if case_sensitive else re.IGNORECASE
        self._matches_name = _compile([pattern for pattern in patterns if "/" not in pattern], flags)
        self._matches_path = _compile([pattern for pattern in patterns if "/" in pattern], flags)

    def matches(self, base: str, name: str) -> bool:
        """Return True if the file ``base`` with the path ``name`` is read."""
        if not self._matches_pattern(base, name):
            # A file of rejected rows matches if its origin does, whatever format it is written in.
            origin = origin_name(base)
            if origin is None or not self._matches_pattern(origin, name.removesuffix(base) + origin):
                return False
        return not has_temporary_name(base)

    def _matches_pattern(self, base: str, name: str) -> bool:
        by_name, by_path = self._matches_name, self._matches_path
        return bool((by_name and by_name(base)) or (by_path and by_path(name)))


def has_temporary_name(base: str) -> bool:
    """Return True if a file of this name, without folders, never holds data of a user."""
    return holds_no_data(base) or base.lower().endswith(_REPORTS)


def is_temporary(name: str) -> bool:
    """Return True if the path has a hidden or temporary name, or is in a folder that is never read."""
    folders, _, base = name.rpartition("/")
    return has_temporary_name(base) or any(map(is_no_data_folder, folders.split("/")))


def _compile(patterns: Sequence[str], flags: int) -> Callable[[str], re.Match[str] | None] | None:
    return _compiled(tuple(patterns), flags).match if patterns else None


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...], flags: int) -> re.Pattern[str]:
    """Return one expression for all patterns. Most folders have the default ones."""
    return re.compile("|".join(map(fnmatch.translate, patterns)), flags)
