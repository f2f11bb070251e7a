"""The named checks of a drop folder, for `ingestd check`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from connectors.directory.options import DirectoryOptions
from connectors.directory.readiness.not_open import NotOpen
from connectors.directory.scan import Scanner
from connectors.filesystem import describe_error, real_path
from connectors.folder_watch import FolderWatch
from connectors.mounts import MountGuard
from ingestd.sdk import SourceUnavailable, Step

_NAMED = 5


def steps(
    folder: Path,
    archive: Path | None,
    places: Mapping[str, Path],
    *,
    scanner: Scanner,
    options: DirectoryOptions,
    guard: MountGuard,
) -> Iterator[Step]:
    """Each check in order; after a folder that can't be listed there is nothing more to say.

    ``places``: the other folders that are written to, by the names of their settings.
    """
    try:
        guard.check()
        found = scanner.scan()
    except SourceUnavailable as error:
        yield Step(name="folder", outcome="failed", sentence=str(error))
        return
    yield Step(name="folder", outcome="passed", sentence=f"{folder} can be listed.")
    yield from _watching(folder, options)
    if options.after == "keep":
        yield Step(name="moving files", outcome="skipped", sentence="Files stay where they are (after: keep).")
    elif os.access(folder, os.W_OK | os.X_OK):
        yield Step(name="moving files", outcome="passed", sentence=f"Files can be taken out of {folder}.")
    else:
        sentence = f"Files can't be taken out of {folder}: allow writing to the folder, or set after: keep."
        yield Step(name="moving files", outcome="failed", sentence=sentence)
    if archive is not None:
        yield from _archive(folder, archive)
    for name, place in places.items():
        yield _written(name, place)
    unreadable = [name for name in found.files if not os.access(folder / name, os.R_OK)]
    if unreadable:
        sentence = f"{len(unreadable)} files can't be read ({_named(unreadable)}): allow reading them."
        yield Step(name="reading files", outcome="failed", sentence=sentence)
    sentence = f"{len(found.files)} files match {options.patterns_in_words}; {len(found.empty)} are still empty."
    yield Step(name="files", outcome="passed", sentence=sentence)
    if found.unmatched:
        yield Step(name="not taken", outcome="skipped", sentence=found.unmatched_sentence)
    if found.refused:
        yield Step(name="refused", outcome="skipped", sentence=refused_sentence(found.refused))


def refused_sentence(refused: Mapping[str, str]) -> str:
    """A sentence on files that are not taken, with the reason of the first of them."""
    named = _named([f"{name}: {reason}" for name, reason in sorted(refused.items())])
    return f"{len(refused)} are not taken ({named})."


def _watching(folder: Path, options: DirectoryOptions) -> Iterator[Step]:
    with FolderWatch(folder, lambda: None, recursive=False, how=options.watch) as watch:
        watch.rearm()
        every = min(options.poll_seconds, options.rescan_seconds) if watch.polling else options.rescan_seconds
        yield Step(
            name="watching", outcome="passed", sentence=f"{watch.sentence}; looked through every {every:g} seconds."
        )
    if any(isinstance(rule, NotOpen) for rule in options.rules):
        sentence = "Writers on this machine are seen, of files of other accounts only by root; writers elsewhere never."
        yield Step(name="not-open", outcome="passed", sentence=sentence)


def _archive(folder: Path, archive: Path) -> Iterator[Step]:
    if real_path(archive) == real_path(folder):
        sentence = f"The archive {archive} is the folder itself: archived files would be read again. Choose another."
        yield Step(name="archive", outcome="failed", sentence=sentence)
        return
    if obstacle := _obstacle(archive):
        yield Step(name="archive", outcome="failed", sentence=f"The archive {obstacle}")
        return
    yield Step(name="archive", outcome="passed", sentence=f"Files can be put into {archive}.")
    if _nearest(archive).stat().st_dev == folder.stat().st_dev:
        sentence = "Folder and archive are on one file system: a file moves in one step."
    else:
        sentence = "Folder and archive are on different file systems: a file is copied, checked and then deleted."
    yield Step(name="file system", outcome="passed", sentence=sentence)


def _written(name: str, place: Path) -> Step:
    if obstacle := _obstacle(place):
        return Step(name=name, outcome="failed", sentence=obstacle)
    return Step(name=name, outcome="passed", sentence=f"Files can be put into {place}.")


def _obstacle(place: Path) -> str:
    """Return why files can't be put into a folder, as a sentence; empty: they can."""
    try:
        existing = _nearest(place)
    except OSError as error:
        return f"{place} can't be written: {describe_error(error)}"
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        return ""
    return f"{place} can't be written: make {existing} a folder that ingestd's user may write to."


def _nearest(folder: Path) -> Path:
    """Return the folder, or the one above it in which it is to be made."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _nearest(folder.parent)
    return folder


def _named(names: list[str]) -> str:
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])
