"""The private folders of the connectors next to the state file; see `SourceContext.keep` and `SourceContext.cache`.

`STATE.connectors` has files that must not be lost, and is part of backups. `STATE.kept` has caches, and is not part of backups.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from ingestd.sdk.kept_file import MAX_BYTES, private_folder, write_kept
from ingestd.sdk.kept_file import read_kept as read_kept_file


def cache_folder(state: Path, pipeline: str) -> Path:
    """Return the folder of a pipeline for its caches. The folder may not exist."""
    return _caches(state) / _name(pipeline)


def kept_folder(state: Path, pipeline: str) -> Path:
    """Return the folder of a pipeline for files that must not be lost. The folder may not exist."""
    return _kept(state) / _name(pipeline)


def remove_unused(state: Path, pipelines: Iterable[str]) -> None:
    """Remove the caches of all pipelines except ``pipelines``. Files that can't be removed stay."""
    used = {_name(pipeline) for pipeline in pipelines}
    with suppress(OSError), _opened(_caches(state)) as caches:
        for name in _names(caches, stat.S_ISDIR):
            if name not in used:
                shutil.rmtree(name, ignore_errors=True, dir_fd=caches)


def move_kept(state: Path, renamed: Iterable[tuple[str, str]]) -> None:
    """Move the kept files of renamed pipelines to their new names, unless another pipeline has files under the new name.

    ``renamed``: pairs of former and current name. Pipelines may exchange names. The next call completes an interrupted move.
    """
    names = dict(renamed)
    with suppress(FileNotFoundError), _opened(_kept(state)) as folder:
        there = set(os.listdir(folder))  # noqa: PTH208 - of a descriptor
        for before, name in names.items():
            former, present = _name(before), _name(name)
            if former in there and (name in names or present not in there):
                os.replace(former, f".{present}", src_dir_fd=folder, dst_dir_fd=folder)
                there = there - {former} | {f".{present}"}
        for hidden in sorted(one for one in there if one.startswith(".")):
            if hidden[1:] not in there:
                os.replace(hidden, hidden[1:], src_dir_fd=folder, dst_dir_fd=folder)


def read_kept(state: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield pipeline, name and content of every kept file.

    Raises:
        OSError: a file can't be read.
    """
    try:
        with _opened(_kept(state)) as kept:
            pipelines = _names(kept, stat.S_ISDIR)
    except FileNotFoundError:
        return
    for pipeline in pipelines:
        with private_folder(_kept(state) / pipeline) as folder:
            for name in _names(folder, stat.S_ISREG):
                yield unquote(pipeline), name, read_kept_file(folder, name)[:MAX_BYTES]


def restore_kept(state: Path, files: Iterable[tuple[str, str, bytes]]) -> None:
    """Write kept files. Other kept files stay. If run as root, the owner of the state file's folder owns the new files.

    Raises:
        OSError: a file can't be written.
    """
    for pipeline, name, content in files:
        write_kept(kept_folder(state, pipeline), Path(name).name, content)


def _names(folder: int, is_kind: Callable[[int], bool]) -> list[str]:
    """Return the names of one kind without a leading dot. Links are omitted: only another account can have made them."""
    names = os.listdir(folder)
    found = sorted(name for name in names if not name.startswith("."))
    return [name for name in found if is_kind(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)]


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a folder next to the state file, and yield its descriptor. The folder must not be a link."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _name(pipeline: str) -> str:
    return quote(pipeline, safe=" ").replace(".", "%2E")


def _caches(state: Path) -> Path:
    return state.with_name(state.name + ".kept")


def _kept(state: Path) -> Path:
    return state.with_name(state.name + ".connectors")
