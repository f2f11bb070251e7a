"""Files that commands write: each is complete, or as it was before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from ingestd.core.errors import IngestdError

_BEGINNING = 11
"""The bytes by which a plan or a page differs from another file, such as the configuration."""


class OutputUnwritable(IngestdError):
    """A file that a command was to write can't be written; the sentence has the reason."""


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file with mode 0600, because it contains values or secrets.

    ``replace``: a file that begins like the new one is replaced, such as a former plan. Any other file that exists is an error.

    Raises:
        OutputUnwritable: it can't be written, or another file has its name.
    """
    hidden = path.with_name(f".{path.name}.part")
    try:
        if replace:
            _require_alike(path, content[:_BEGINNING])
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            hidden.unlink(missing_ok=True)
            with os.fdopen(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(content)
            hidden.replace(path)
        except OSError:
            hidden.unlink(missing_ok=True)
            if not replace:
                path.unlink(missing_ok=True)  # it is empty
            raise
    except FileExistsError as error:
        raise OutputUnwritable(f"{path} exists, and is not overwritten. Name another file.") from error
    except OSError as error:
        raise OutputUnwritable(f"{path} can't be written: {error.strerror or error}.") from error


def _require_alike(path: Path, beginning: bytes) -> None:
    with suppress(FileNotFoundError), path.open("rb") as file:
        if file.read(_BEGINNING) not in {b"", beginning}:
            raise FileExistsError(path)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a file that replaces ``path`` at the end of the block, with the same mode. After an exception it is removed.

    Raises:
        OutputUnwritable: it can't be written.
    """
    target = path.resolve()
    hidden = target.with_name(f".{target.name}.part")
    try:
        with hidden.open("w", encoding="utf-8", newline="") as file:
            if target.exists():
                shutil.copymode(target, hidden)
            yield file
        hidden.replace(target)
    except OSError as error:
        raise OutputUnwritable(f"{path} can't be written: {error.strerror or error}.") from error
    finally:
        hidden.unlink(missing_ok=True)
