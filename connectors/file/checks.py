"""The named checks of one file, for `ingestd check`, and who works on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from connectors.filesystem import describe_error
from ingestd.sdk import SourceBroken, Step


def steps(path: Path, file_format: Callable[[], object]) -> Iterator[Step]:
    """Each check in order; after a file that is not there, there is nothing more to say."""
    try:
        path.parent.stat()
    except OSError as error:
        yield Step(name="folder", outcome="failed", sentence=f"{path.parent} can't be used: {describe_error(error)}")
        return
    yield Step(name="folder", outcome="passed", sentence=f"{path.parent} is there.")
    if not os.path.isfile(path):  # noqa: PTH113 - raises nothing
        sentence = f"{path} is not there, or is no file. Put it there, or correct path."
        yield Step(name="file", outcome="failed", sentence=sentence)
        return
    if os.access(path, os.R_OK):
        yield Step(name="file", outcome="passed", sentence=f"{path} can be read.")
    else:
        yield Step(name="file", outcome="failed", sentence=f"{path} can't be read: allow ingestd's user to read it.")
    try:
        file_format()
    except SourceBroken as error:
        yield Step(name="format", outcome="failed", sentence=str(error))
    if holder := describe_office_lock(path):
        yield Step(name="in use", outcome="skipped", sentence=holder)


def describe_office_lock(path: Path) -> str:
    """A sentence where an office program's lock file lies beside the file; else empty. What was saved is read all the same."""
    for lock in (
        path.with_name(f"~${path.name}"),
        path.with_name(f"~${path.name[2:]}"),
        path.with_name(f".~lock.{path.name}#"),
    ):
        if os.path.lexists(lock):
            return f"Somebody has {path.name} open ({lock.name} lies beside it); it is read as it was saved last."
    return ""
