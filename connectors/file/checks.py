"""The checks of `ingestd check` for one file, and a test whether an office program has the file open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from connectors.beneath import Folder, NotRegularFile, RootedPath
from connectors.filesystem import describe_error
from connectors.formats import Format
from ingestd.sdk import SourceBroken, SourceUnavailable, Step


def run_checks(path: Path, locate: Callable[[], RootedPath], resolve_format: Callable[[], Format]) -> Iterator[Step]:
    """Yield the result of each check in order. If the file does not exist, no other check follows.

    ``locate`` returns the file's path with its links resolved.
    """
    try:
        Folder.open_root(path.parent, is_listed=False).close()
    except OSError as error:
        yield Step(name="folder", outcome="failed", sentence=f"{path.parent} can't be used: {describe_error(error)}")
        return
    yield Step(name="folder", outcome="passed", sentence=f"{path.parent} exists.")
    try:
        os.close(locate().open_file())
    except SourceUnavailable as error:
        yield Step(name="file", outcome="failed", sentence=str(error))
        return
    except PermissionError:
        yield Step(name="file", outcome="failed", sentence=f"{path} can't be read: allow ingestd's user to read it.")
    except (FileNotFoundError, NotRegularFile):
        sentence = f"{path} does not exist, or is no file. Put it there, or correct the setting path."
        yield Step(name="file", outcome="failed", sentence=sentence)
        return
    except OSError as error:
        yield Step(name="file", outcome="failed", sentence=f"{path} can't be read: {describe_error(error)}")
        return
    else:
        yield Step(name="file", outcome="passed", sentence=f"{path} can be read.")
    try:
        resolve_format().check_usable()
    except (SourceBroken, SourceUnavailable) as error:
        yield Step(name="format", outcome="failed", sentence=str(error))
    if sentence := describe_office_lock(path):
        yield Step(name="in use", outcome="skipped", sentence=sentence)


def describe_office_lock(path: Path) -> str:
    """Return a sentence if the lock file of an office program exists beside the file; else empty.

    The lock file does not prevent reading.
    """
    try:
        with Folder.open_root(path.parent, is_listed=False) as folder:
            for lock in (f"~${path.name}", f"~${path.name[2:]}", f".~lock.{path.name}#"):
                if folder.has(lock):
                    return f"A user has {path.name} open ({lock} exists); ingestd reads what was saved last."
    except OSError:
        return ""  # the checks of the file report the error
    return ""
