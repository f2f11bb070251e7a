"""The private folders of the connectors beside the state file; see `SourceContext.keep` and `SourceContext.cache`.

`STATE.connectors` has what must not be lost, and is part of backups. `STATE.kept` only saves work, and is in no backup.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from ingestd.mirror.sqlite.file_owner import give, make_folder, owner_like
from ingestd.sdk.kept_file import MAX_BYTES, write_kept


def cache_folder(state: Path, pipeline: str) -> Path:
    """Return the folder of a pipeline for what only saves work. It may not exist."""
    return _caches(state) / _name(pipeline)


def kept_folder(state: Path, pipeline: str) -> Path:
    """Return the folder of a pipeline for what must not be lost. It may not exist."""
    return _kept(state) / _name(pipeline)


def remove_unused(state: Path, pipelines: Iterable[str]) -> None:
    """Remove the caches of all other pipelines. What can't be removed stays."""
    used = {cache_folder(state, pipeline) for pipeline in pipelines}
    parent = _caches(state)
    for folder in parent.iterdir() if parent.is_dir() else ():
        if folder not in used:
            shutil.rmtree(folder, ignore_errors=True)


def move_kept(state: Path, renamed: Iterable[tuple[str, str]]) -> None:
    """Give the kept files of pipelines to their new names, unless these have files of their own. Names may be exchanged.

    ``renamed``: pairs of former and present name. A move that a crash interrupted is completed by the next call.
    """
    names = dict(renamed)
    for before, name in names.items():
        former, present = kept_folder(state, before), kept_folder(state, name)
        if former.exists() and (name in names or not present.exists()):
            former.replace(present.with_name(f".{present.name}"))
    for hidden in sorted(_kept(state).glob(".*")):
        present = hidden.with_name(hidden.name[1:])
        if not present.exists():
            hidden.replace(present)


def read_kept(state: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield pipeline, name and content of every kept file.

    Raises:
        OSError: a file can't be read.
    """
    for path in sorted(_kept(state).glob("*/*")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            with path.open("rb") as file:
                yield unquote(path.parent.name), path.name, file.read(MAX_BYTES)


def restore_kept(state: Path, files: Iterable[tuple[str, str, bytes]]) -> None:
    """Write kept files, for the owner of the state file or of its folder; others stay.

    Raises:
        OSError: a file can't be written.
    """
    owner = owner_like(state)
    for pipeline, name, content in files:
        folder = kept_folder(state, pipeline)
        make_folder(folder, owner, mode=0o700)
        write_kept(folder, Path(name).name, content)
        give(folder / Path(name).name, owner)


def _name(pipeline: str) -> str:
    return quote(pipeline, safe=" ").replace(".", "%2E")


def _caches(state: Path) -> Path:
    return state.with_name(state.name + ".kept")


def _kept(state: Path) -> Path:
    return state.with_name(state.name + ".connectors")
