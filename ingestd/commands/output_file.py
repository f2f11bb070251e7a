"""Files that commands write atomically: a file has either its complete new content or its earlier content."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from ingestd.core.errors import IngestdError

_BEGINNING = 11
"""The number of bytes at the beginning of a file that identify its kind, such as a plan."""


class OutputUnwritable(IngestdError):
    """A command can't write a file; the sentence has the reason."""


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file with mode 0600, because it contains values or secrets.

    ``replace``: an existing file that is empty or begins like ``content`` is replaced. Any other existing file is an error.

    Raises:
        OutputUnwritable: the file can't be written, or an existing file must not be replaced.
    """
    try:
        if replace:
            _require_alike(path, content[:_BEGINNING])
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with _hidden_file(path, 0o600) as file:
                file.write(content)
        except BaseException:  # also an interrupt
            if not replace:
                path.unlink(missing_ok=True)  # the empty file that was created above
            raise
    except FileExistsError as error:
        raise OutputUnwritable(f"{path} exists, and is not overwritten. Name another file.") from error
    except OSError as error:
        raise OutputUnwritable(f"{path} can't be written: {error.strerror or error}.") from error


def _require_alike(path: Path, beginning: bytes) -> None:
    if path.exists() and not path.is_file():  # such as /dev/null
        raise FileExistsError(path)
    with suppress(FileNotFoundError), path.open("rb") as file:
        if file.read(_BEGINNING) not in {b"", beginning}:
            raise FileExistsError(path)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Open a new file that replaces ``path`` when the context ends. The new file gets the mode of the replaced file.

    After an exception, the new file is removed. If ``path`` is a device or pipe, such as ``/dev/null``, it is opened directly.

    Raises:
        OutputUnwritable: the file can't be written.
    """
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8", newline="") as text:
                yield text
            return
        with _hidden_file(target, 0o666) as file:
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            text = TextIOWrapper(file, encoding="utf-8", newline="")
            try:
                yield text
            finally:
                text.detach()  # flushes the text
    except OSError as error:
        raise OutputUnwritable(f"{path} can't be written: {error.strerror or error}.") from error


@contextmanager
def _hidden_file(target: Path, mode: int) -> Iterator[BinaryIO]:
    """Open a new hidden file in the folder of ``target``, and replace ``target`` by this file when the context ends.

    After an exception, the new file is removed. An old file or link with its name is removed, not followed. The umask applies.
    """
    hidden = target.with_name(f".{target.name}.part")
    hidden.unlink(missing_ok=True)
    descriptor = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
