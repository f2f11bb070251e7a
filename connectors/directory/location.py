"""Where a file is that was read: by its path, and by what its status was then."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from connectors.directory.archiver import Archiver
from connectors.directory.options import DirectoryOptions
from connectors.files.durable_write import shorten_name
from connectors.files.identity import Identity
from connectors.files.resubmission import origin_name
from connectors.filesystem import real_path
from ingestd.sdk import Cursor

_ARCHIVED = 10_000
"""So many names like one are looked at in the archive."""
_COARSE_SECONDS = 2
_DEPTHS = {"none": 0, "year": 1, "month": 2, "day": 3}


def locate(path: Path, folder: Path, away: Archiver, options: DirectoryOptions) -> str | None:
    """The path below the folder of the file that an absolute path is, was, or holds the rejected rows of; None: of none."""
    # Those that may lie in another come before it.
    if (failed := _below(path, away.failed)) is not None:
        return PurePosixPath(*failed).as_posix()
    if (rows := _below(path, away.quarantine)) is not None:
        name = PurePosixPath(*rows)
        return name.with_name(origin_name(name.name) or name.name).as_posix()
    if (archived := _below(path, away.archive)) is not None:
        return PurePosixPath(*(archived[_DEPTHS[options.archive_folders] :] or archived)).as_posix()
    dropped = _below(path, folder)
    return PurePosixPath(*dropped).as_posix() if dropped is not None else None


def _below(path: Path, folder: Path | None) -> tuple[str, ...] | None:
    """The steps from a folder down to a path; None where the path is not in it."""
    if folder is None:
        return None
    for spelled in (path, real_path(path.parent) / path.name):
        for root in (Path(os.path.abspath(folder)), real_path(folder)):  # noqa: PTH100 - as written, without following links
            if spelled.is_relative_to(root) and spelled != root:
                return spelled.relative_to(root).parts
    return None


def whereabouts(name: str, cursor: Cursor, folder: Path, archive: Path | None, options: DirectoryOptions) -> str:
    """The end of a sentence on the file that the cursor speaks of."""
    try:
        identity = Identity.from_status((folder / name).stat())
    except OSError:
        identity = None
    if identity is not None and identity.is_at(cursor):
        return "it stays where it is" if options.after == "keep" else f"it is still in {folder}"
    if archive is not None:
        for place in _folders(archive, _DEPTHS[options.archive_folders]):
            if (archived := _archived(name, cursor, place)) is not None:
                return f"it was archived as {archived}"
    if identity is not None:
        return "another content has taken its place"
    return "it was deleted" if options.after == "delete" else f"it is not in {folder} any more"


def _folders(archive: Path, depth: int) -> Iterable[Path]:
    """The folders of the archive that files are in, the latest date first."""
    return sorted(archive.glob("/".join(["[0-9]*"] * depth)), reverse=True) if depth else [archive]


def _archived(name: str, cursor: Cursor, archive: Path) -> Path | None:
    target = archive / shorten_name(PurePosixPath(name))
    for number in range(1, _ARCHIVED):
        candidate = target if number == 1 else target.with_name(f"{target.stem}~{number}{target.suffix}")
        try:
            status = candidate.lstat()
        except OSError:
            return None
        if _is_it(Identity.from_status(status), cursor):
            return candidate
    return None


def _is_it(identity: Identity, cursor: Cursor) -> bool:
    """The same file moved, or its copy: a copy has its time as exactly as its file system can tell."""
    if identity.size != cursor.get("size"):
        return False
    written = cursor.get("mtime_ns")
    return isinstance(written, int) and abs(identity.mtime_ns - written) <= _COARSE_SECONDS * 10**9
