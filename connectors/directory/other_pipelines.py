"""Protection of other pipelines: no file that another pipeline reads is removed, and none that it would read is written."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from connectors.beneath import RootedPath
from connectors.filesystem import real_path
from ingestd.sdk import SourceUnavailable

Readers = Callable[[str], Collection[str]]
"""See `SourceContext.other_readers`. The argument is the absolute path of a file, or the address of a file on a server."""


class DiskReaders:
    """Returns the pipelines that read a file on disk."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._roots: dict[Path, Path] = {}

    def __call__(self, path: RootedPath) -> Collection[str]:
        """Return the names of the other pipelines that read the file."""
        if path.root not in self._roots:
            self._roots[path.root] = real_path(path.root)
        return self._readers(str(self._roots[path.root] / path.name))


def check_removable(path: object, readers: Collection[str]) -> None:
    """Check that no other pipeline reads the file. A pipeline would miss a file that is removed.

    Raises:
        SourceUnavailable: the pipelines ``readers`` read the file.
    """
    if readers:
        raise SourceUnavailable(describe_readers(path, readers))


def describe_readers(path: object, readers: Collection[str]) -> str:
    """Return a sentence that says why a file is not removed, and what to do."""
    return (
        f"{path} stays after it is read, because {_pipelines(readers)} it, too, and would miss it. Give each pipeline a"
        " different folder or pattern, or set after: keep in all of them."
    )


def check_writable(path: object, readers: Collection[str]) -> None:
    """Check that no other pipeline would read the file that is about to be written.

    Raises:
        SourceUnavailable: the pipelines ``readers`` would read the file.
    """
    if readers:
        raise SourceUnavailable(
            f"{path} is not written, because {_pipelines(readers)} that folder, and would read it as a new file. Choose a folder"
            " that no other pipeline reads, or give the other pipeline a pattern that does not match it."
        )


def _pipelines(readers: Collection[str]) -> str:
    names = " and ".join(f"'{name}'" for name in sorted(readers))
    return f"pipeline {names} reads" if len(readers) == 1 else f"pipelines {names} read"
