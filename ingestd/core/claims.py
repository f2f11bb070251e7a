"""The files that a source reads, moves and writes, and the conflicts between two sources.

This module performs no I/O.

Folders are absolute paths with all links resolved, so that two spellings of one folder are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        glob = globs.parse(pattern)
        if "/" in pattern:
            yield from globs.after_prefix(glob, below, ignore_case=claim.ignore_case)
        else:
            yield globs.within_folder(glob)
            if claim.recursive:
                yield globs.below_any_folder(glob)


def _names(claim: FileClaim) -> Iterator[Glob]:
    """Yield globs that match at least the names of all files that the claim reads."""
    for pattern in claim.patterns:
        name = pattern.rpartition("/")[2]
        if "/" in pattern and "*" in pattern:
            # The last star may match folders, too, so only the text after it certainly belongs to the name.
            end = pattern.rpartition("*")[2]
            name = end.rpartition("/")[2] if "/" in end else f"*{end}"
        yield globs.within_folder(globs.parse(name))
