"""Finds the name of the file to which a path belongs, and the present location of a file that was read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath

from connectors.beneath import RootedPath
from connectors.directory.archiver import Archiver
from connectors.directory.options import DirectoryOptions
from connectors.files.durable_write import numbered_names, shorten_name
from connectors.files.identity import Identity
from connectors.files.resubmission import origin_name
from connectors.filesystem import real_path
from ingestd.sdk import Cursor

_ARCHIVED = 10_000
"""How many numbered variants of a name are looked up in the archive."""
_COARSE_SECONDS = 2
_DEPTHS = {"none": 0, "year": 1, "month": 2, "day": 3}


def locate(path: Path, folder: Path, archiver: Archiver, options: DirectoryOptions) -> str | None:
    """Return the name (path below the folder) of the file to which an absolute path belongs; None if it belongs to none.

    The path may be in the folder, or in the folder of archived files, failed files or rejected rows.
    """
    # The inner folders are compared first: failed and quarantine can be inside the archive, which can be inside the folder.
    if (failed := _below(path, archiver.failed)) is not None:
        return PurePosixPath(*failed).as_posix()
    if (rows := _below(path, archiver.quarantine)) is not None:
        name = PurePosixPath(*rows)
        return name.with_name(origin_name(name.name) or name.name).as_posix()
    if (archived := _below(path, archiver.archive)) is not None:
        return PurePosixPath(*(archived[_DEPTHS[options.archive_folders] :] or archived)).as_posix()
    dropped = _below(path, folder)
    return PurePosixPath(*dropped).as_posix() if dropped is not None else None


def _below(path: Path, folder: Path | RootedPath | None) -> tuple[str, ...] | None:
    """Return the parts of the path below a folder; None if the path is not in the folder."""
    if folder is None:
        return None
    folder = folder.path if isinstance(folder, RootedPath) else folder
    for spelled in (path, real_path(path.parent) / path.name):
        for root in (Path(os.path.abspath(folder)), real_path(folder)):  # noqa: PTH100 - as written, without following links
            if spelled.is_relative_to(root) and spelled != root:
                return spelled.relative_to(root).parts
    return None


def describe_location(
    name: str, cursor: Cursor, folder: Path, archive: RootedPath | None, options: DirectoryOptions
) -> str:
    """Return the end of a sentence that states the present location of the file that the cursor describes."""
    try:
        place = RootedPath(folder, name)
        identity = Identity.from_status((place.resolve() if options.after == "keep" else place).status())
    except OSError:
        identity = None
    if identity is not None and identity.matches_cursor(cursor):
        return f"it stays in {folder}" if options.after == "keep" else f"it is still in {folder}"
    if (archived := next(find_archived(name, cursor, archive, options), None)) is not None:
        return f"it was archived as {archived}"
    if identity is not None:
        return "it was replaced by a file with other content"
    return "it was deleted" if options.after == "delete" else f"it is not in {folder} any more"


def find_archived(
    name: str, cursor: Cursor, archive: RootedPath | None, options: DirectoryOptions
) -> Iterator[RootedPath]:
    """Yield the archived files that have the size and time in ``cursor``. The latest dated folder comes first."""
    if archive is not None:
        for folder in _dated_folders(archive, _DEPTHS[options.archive_folders]):
            yield from _find_in_folder(name, cursor, folder)


def _dated_folders(archive: RootedPath, depth: int) -> Iterator[RootedPath]:
    """Yield the dated folders at ``depth`` below the archive, the latest date first. Depth 0: yield the archive itself."""
    if not depth:
        yield archive
        return
    try:
        with archive.open_folder() as folder, folder.entries() as entries:
            dates = [entry.name for entry in entries if entry.name[0].isdecimal()]
    except OSError:
        return
    for date in sorted(dates, reverse=True):
        yield from _dated_folders(archive / date, depth - 1)


def _find_in_folder(name: str, cursor: Cursor, archive: RootedPath) -> Iterator[RootedPath]:
    for candidate in islice(numbered_names(archive / shorten_name(PurePosixPath(name)).as_posix()), _ARCHIVED):
        try:
            status = candidate.status()
        except OSError:
            return
        if stat.S_ISREG(status.st_mode) and _is_moved_file(Identity.from_status(status), cursor):
            yield candidate


def _is_moved_file(identity: Identity, cursor: Cursor) -> bool:
    """Return True if the file has the cursor's size and time. Some file systems round times, so 2 s are tolerated."""
    if identity.size != cursor.get("size"):
        return False
    written = cursor.get("mtime_ns")
    return isinstance(written, int) and abs(identity.mtime_ns - written) <= _COARSE_SECONDS * 10**9


def cursor_of_facts(facts: Mapping[str, str]) -> Cursor | None:
    """Return a cursor with a file's size and time, taken from the facts of its reading; None if a fact is missing."""
    size, written = facts.get("file.size"), facts.get("file.mtime")
    if size is None or written is None:
        return None
    return {"size": int(size), "mtime_ns": int(datetime.fromisoformat(written).timestamp() * 10**9)}
