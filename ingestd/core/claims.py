"""The files that a source reads, moves and writes, and the conflicts between two sources.

This module performs no I/O.

Folders are absolute paths with all links resolved, so that two spellings of one folder are equal.
"""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ingestd.core import globs
from ingestd.core.globs import Glob


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClaim:
    """The files of one folder that a source reads.

    ``patterns``: globs of file names, or with a slash, of paths below the folder. ``recursive``: files in sub-folders too,
    except in folders that are ``excluded`` or have a name that begins with a dot. ``takes``: files are moved away after they were
    read. ``puts``: folders into which the source writes data files, such as an archive. ``ignore_case``: the patterns ignore
    case.
    """

    folder: str
    patterns: tuple[str, ...]
    recursive: bool = False
    takes: bool = False
    puts: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    ignore_case: bool = True


class ClaimedFiles:
    """All files that the sources of a configuration read; a path is looked up fast."""

    def __init__(self, claims: Iterable[FileClaim]) -> None:
        self._claims: dict[str, list[FileClaim]] = {}
        for claim in claims:
            self._claims.setdefault(claim.folder, []).append(claim)
        self._matchers: dict[str, list[tuple[str, Callable[[str], object]]]] = {}

    def __contains__(self, path: str) -> bool:
        """Return True if a source reads the file at this absolute path, in a folder with all links resolved."""
        folder, _, name = path.rpartition("/")
        matchers = self._matchers.get(folder)
        if matchers is None:
            matchers = self._matchers[folder] = list(self._matchers_for(folder))
        return any(matches(below + name) for below, matches in matchers)

    def _matchers_for(self, folder: str) -> Iterator[tuple[str, Callable[[str], object]]]:
        """Yield, for each claim that reads the folder, the path of the folder below its own, and its patterns as one."""
        for above in ancestors(folder):
            for claim in self._claims.get(above, ()):
                if (below := _below(folder, claim)) is not None:
                    patterns = [text if "/" in text else glob.escape(below) + text for text in claim.patterns]
                    expression = "|".join(map(fnmatch.translate, patterns))
                    yield below, re.compile(expression, re.IGNORECASE if claim.ignore_case else 0).match


def common_file(first: FileClaim, second: FileClaim) -> str | None:
    """Return the path, below the deeper of the two folders, of a file that both would read; None: no file is possible."""
    outer, inner = (first, second) if len(first.folder) <= len(second.folder) else (second, first)
    below = _below(inner.folder, outer)
    if below is None:
        return None
    folders = inner.recursive and outer.recursive
    return next(
        (
            found
            for one in _paths(outer, below)
            for other in _paths(inner, "")
            if (
                found := globs.common(
                    one, other, first_ignores=outer.ignore_case, second_ignores=inner.ignore_case, folders=folders
                )
            )
            is not None
        ),
        None,
    )


def fed_folder(writer: FileClaim, reader: FileClaim) -> str | None:
    """Return a folder into which ``writer`` writes files that ``reader`` would read; None: there is none.

    Exact for globs of names. Of a glob with a slash, only the text after its last ``*`` is compared.
    """
    for folder in writer.puts:
        if _below(folder, reader) is None:
            continue
        for one in _names(writer):
            for other in _names(reader):
                case = {"first_ignores": writer.ignore_case, "second_ignores": reader.ignore_case, "folders": False}
                if globs.common(one, other, **case) is not None:
                    return folder
    return None


def ancestors(folder: str) -> Iterator[str]:
    """Yield the folder and every folder above it."""
    while folder not in {"", "/"}:
        yield folder
        folder = folder.rpartition("/")[0]
    yield "/"


def _below(folder: str, claim: FileClaim) -> str | None:
    """Return the path of ``folder`` below the claim's folder, empty for the same one; None: the claim does not read it."""
    if folder == claim.folder:
        return ""
    above = claim.folder.rstrip("/") + "/"
    if not claim.recursive or not folder.startswith(above):
        return None
    below = folder.removeprefix(above)
    if any(part.startswith(".") for part in below.split("/")) or not set(claim.excluded).isdisjoint(ancestors(folder)):
        return None
    return below + "/"


def _paths(claim: FileClaim, below: str) -> Iterator[Glob]:
    """Yield what the claim reads in the folder ``below`` its own, as globs of paths below that folder."""
    for pattern in claim.patterns:
        parsed = globs.parse(pattern)
        if "/" in pattern:
            yield from globs.after_prefix(parsed, below, ignore_case=claim.ignore_case)
        else:
            yield globs.within_folder(parsed)
            if claim.recursive:
                yield globs.below_any_folder(parsed)


def _names(claim: FileClaim) -> Iterator[Glob]:
    """Yield globs that match at least the names of all files that the claim reads."""
    for pattern in claim.patterns:
        name = pattern.rpartition("/")[2]
        if "/" in pattern and "*" in pattern:
            # The last star may match folders, too, so only the text after it certainly belongs to the name.
            end = pattern.rpartition("*")[2]
            name = end.rpartition("/")[2] if "/" in end else f"*{end}"
        yield globs.within_folder(globs.parse(name))
