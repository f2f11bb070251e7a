"""The files that sources read. This module performs no I/O.

Folders are absolute paths with all links resolved, so that two spellings of one folder are equal.
"""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClaim:
    """The files of one folder that a source reads.

    ``patterns``: globs of file names, or, with a slash, of paths below the folder. ``recursive``: files in sub-folders too,
    except in ``excluded`` folders and in folders with a name that begins with a dot. ``takes``: files are removed after they
    were read. ``ignore_case``: the patterns ignore case.
    """

    folder: str
    patterns: tuple[str, ...]
    recursive: bool = False
    takes: bool = False
    excluded: tuple[str, ...] = ()
    ignore_case: bool = True


class ClaimedFiles:
    """Finds the pipelines that read a path, by the claims of their sources."""

    def __init__(self, claims: Iterable[tuple[str, FileClaim]]) -> None:
        self._claims: dict[str, list[tuple[str, FileClaim]]] = {}
        for pipeline, claim in claims:
            self._claims.setdefault(claim.folder, []).append((pipeline, claim))
        self._matchers: dict[str, list[tuple[str, str, Callable[[str], object]]]] = {}

    def readers(self, path: str) -> frozenset[str]:
        """Return the pipelines that read the file at this absolute path. All links in its folder must be resolved."""
        folder, _, name = path.rpartition("/")
        matchers = self._matchers.get(folder)
        if matchers is None:
            matchers = self._matchers[folder] = list(self._matchers_for(folder))
        return frozenset(pipeline for pipeline, below, matches in matchers if matches(below + name))

    def _matchers_for(self, folder: str) -> Iterator[tuple[str, str, Callable[[str], object]]]:
        """Yield pipeline, path and matcher of each claim on ``folder``. The path is from the claimed folder to ``folder``."""
        for above in _ancestors(folder):
            for pipeline, claim in self._claims.get(above, ()):
                if (below := _below(folder, claim)) is not None:
                    patterns = [text if "/" in text else glob.escape(below) + text for text in claim.patterns]
                    expression = "|".join(map(fnmatch.translate, patterns))
                    yield pipeline, below, re.compile(expression, re.IGNORECASE if claim.ignore_case else 0).match


def _ancestors(folder: str) -> Iterator[str]:
    """Yield the folder and every folder above it."""
    while folder not in {"", "/"}:
        yield folder
        folder = folder.rpartition("/")[0]
    yield "/"


def _below(folder: str, claim: FileClaim) -> str | None:
    """Return the path of ``folder`` below the claim's folder; empty if both are equal, None if the claim excludes it."""
    if folder == claim.folder:
        return ""
    above = claim.folder.rstrip("/") + "/"
    if not claim.recursive or not folder.startswith(above):
        return None
    below = folder.removeprefix(above)
    if any(part.startswith(".") for part in below.split("/")) or not set(claim.excluded).isdisjoint(_ancestors(folder)):
        return None
    return below + "/"
