"""The private folders of the connectors beside the state file; see `SourceContext.keep`.

Their files only save work, so they are in no backup.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote


def kept_folder(state: Path, pipeline: str) -> Path:
    """Return the folder of a pipeline. It may not exist."""
    return _parent(state) / quote(pipeline, safe=" ").replace(".", "%2E")


def remove_unused(state: Path, pipelines: Iterable[str]) -> None:
    """Remove the folders of all other pipelines. What can't be removed stays."""
    used = {kept_folder(state, pipeline) for pipeline in pipelines}
    parent = _parent(state)
    for folder in parent.iterdir() if parent.is_dir() else ():
        if folder not in used:
            shutil.rmtree(folder, ignore_errors=True)


def _parent(state: Path) -> Path:
    return state.with_name(state.name + ".kept")
