"""Files that only their owner can read, because they contain values or secrets."""

from __future__ import annotations

import os
from pathlib import Path

from ingestd.core.errors import IngestdError


class OutputUnwritable(IngestdError):
    """A file that a command was to write can't be written; the sentence has the reason."""


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file with mode 0600. ``replace``: an existing one is replaced, else it is an error.

    Raises:
        OutputUnwritable: it can't be written, or it exists.
    """
    hidden = path.with_name(f".{path.name}.part")
    try:
        if not replace:
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
