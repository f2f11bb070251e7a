"""Checks of a drop folder, for `ingestd check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from connectors.beneath import Folder, RootedPath
from connectors.directory.archiver import Archiver
from connectors.directory.drop_options import DropOptions
from connectors.directory.local_folder import LocalFolder
from connectors.directory.options import DirectoryOptions
from connectors.directory.other_pipelines import describe_readers
from connectors.directory.readiness.not_open import NotOpen
from connectors.directory.scan import ScanResult
from connectors.filesystem import describe_error, list_names
from connectors.folder_watch import FolderWatch
from ingestd.sdk import SourceBroken, SourceUnavailable, Step, counted


def run_checks(drop: LocalFolder, options: DirectoryOptions, archiver: Archiver) -> Iterator[Step]:
    """Yield the results of the checks in order. If the folder can't be listed, only this failure is yielded."""
    folder = drop.root
    try:
        found = drop.scan()
    except SourceUnavailable as error:
        yield Step(name="folder", outcome="failed", sentence=str(error))
        return
    yield Step(name="folder", outcome="passed", sentence=f"{folder} can be listed.")
    yield from _check_watch(folder, options)
    yield from _check_format(options)
    if options.after == "keep":
        yield Step(name="moving files", outcome="skipped", sentence="Files stay where they are (after: keep).")
    elif _is_writable(folder):
        yield Step(name="moving files", outcome="passed", sentence=f"Files can be moved out of {folder}.")
    else:
        sentence = f"Files can't be moved out of {folder}: allow writing to the folder, or set after: keep."
        yield Step(name="moving files", outcome="failed", sentence=sentence)
    if options.after == "archive" and archiver.archive is not None:
        yield from _check_archive(folder, archiver.archive, is_the_folder=archiver.is_the_folder)
    for name, path in archiver.output_folders.items():
        yield _check_output_folder(name, path)
    if options.after != "keep" and (shared := [name for name in found.files if archiver.readers_of(name)]):
        more = f" The same holds for {counted(len(shared) - 1, 'more file')}." if len(shared) > 1 else ""
        sentence = f"{describe_readers(folder / shared[0], archiver.readers_of(shared[0]))}{more}"
        yield Step(name="other pipelines", outcome="failed", sentence=sentence)
    unreadable = [name for name in found.files if not _is_readable(drop, name)]
    if unreadable:
        sentence = f"{counted(len(unreadable), 'file')} can't be read ({list_names(unreadable)}): allow reading them."
        yield Step(name="reading files", outcome="failed", sentence=sentence)
    yield from describe_scan(found, options)


def describe_scan(found: ScanResult, options: DropOptions) -> Iterator[Step]:
    """Yield the numbers of matching, unmatched and skipped files that a scan found."""
    sentence = (
        f"Matching {options.patterns_in_words}: {counted(len(found.files), 'file')}; still empty: {len(found.empty)}."
    )
    yield Step(name="files", outcome="passed", sentence=sentence)
    if found.unmatched:
        yield Step(name="skipped files", outcome="skipped", sentence=found.unmatched_sentence)
    if found.skipped:
        yield Step(name="refused", outcome="skipped", sentence=describe_skipped(found.skipped))


def describe_skipped(skipped: Mapping[str, str]) -> str:
    """Return a sentence about the files that a scan skipped, with the reasons for the first files."""
    named = list_names([f"{name}: {reason}" for name, reason in sorted(skipped.items())])
    return f"{len(skipped)} are skipped ({named})."


def _check_format(options: DirectoryOptions) -> Iterator[Step]:
    if options.format is not None:
        try:
            options.format.check_usable()
        except SourceUnavailable as error:
            yield Step(name="format", outcome="failed", sentence=str(error))


def _check_watch(folder: Path, options: DirectoryOptions) -> Iterator[Step]:
    with FolderWatch(folder, mode=options.watch) as watch:
        watch.rearm()
        every = watch.interval(options.poll_seconds, options.rescan_seconds)
        yield Step(name="watching", outcome="passed", sentence=f"{watch.sentence}; scanned every {every:g} seconds.")
    if any(isinstance(rule, NotOpen) for rule in options.rules):
        sentence = (
            "Writers on this machine are detected, for files of other accounts only if ingestd runs as root. Writers on other"
            " machines are not."
        )
        yield Step(name="not-open", outcome="passed", sentence=sentence)


def _check_archive(folder: Path, archive: RootedPath, *, is_the_folder: bool) -> Iterator[Step]:
    if is_the_folder:
        sentence = f"The archive {archive} is the folder itself: archived files would be read again. Choose another."
        yield Step(name="archive", outcome="failed", sentence=sentence)
        return
    if reason := _why_not_writable(archive):
        yield Step(name="archive", outcome="failed", sentence=f"The archive {reason}")
        return
    yield Step(name="archive", outcome="passed", sentence=f"Files can be put into {archive}.")
    with archive.open_nearest() as nearest, Folder.open_root(folder, is_listed=False) as root:
        is_near = nearest.identity[0] == root.identity[0]
    if is_near:
        sentence = "Folder and archive are on one file system: a file moves in one step."
    else:
        sentence = "Folder and archive are on different file systems: a file is copied, checked and then deleted."
    yield Step(name="file system", outcome="passed", sentence=sentence)


def _check_output_folder(name: str, path: RootedPath) -> Step:
    if reason := _why_not_writable(path):
        return Step(name=name, outcome="failed", sentence=reason)
    return Step(name=name, outcome="passed", sentence=f"Files can be put into {path}.")


def _why_not_writable(path: RootedPath) -> str:
    """Return a sentence that says why files can't be written to a folder; empty if they can be written."""
    try:
        with path.open_nearest() as existing:
            if existing.is_writable:
                return ""
            return f"{path} can't be written: make {existing.path} a folder that ingestd's user may write to."
    except OSError as error:
        return f"{path} can't be written: {describe_error(error)}"


def _is_writable(folder: Path) -> bool:
    try:
        with Folder.open_root(folder) as root:
            return root.is_writable
    except OSError:
        return False


def _is_readable(drop: LocalFolder, name: str) -> bool:
    """Return False if a file can't be opened, for example because of its permissions. A missing file counts as readable."""
    try:
        with drop.file(name).open().file:
            return True
    except FileNotFoundError:
        return True
    except (OSError, SourceBroken):
        return False
