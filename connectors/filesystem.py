"""Helpers for sentences about file system errors and lists of names, and for paths with resolved links."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from ingestd.sdk import SourceUnavailable

_NOT_RESPONDING = frozenset({
    errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.ENOTCONN,
    errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH,
    errno.ENETDOWN, errno.ENETUNREACH, errno.EREMOTEIO, errno.ESHUTDOWN, errno.ETIMEDOUT,
})  # fmt: skip
_ADVICE = {
    errno.ENOENT: "Create or mount it.",
    errno.EEXIST: "A file has the name of a folder: move it away, or choose another folder.",
    errno.EACCES: "Allow ingestd's user to enter its folders and to use it.",
    errno.EPERM: "Allow ingestd's user to enter its folders and to use it.",
    errno.ENOTDIR: "A part of its path is not a folder: correct the path.",
    errno.ELOOP: "Its path has a symbolic link that leads back to itself, or a link below a watched folder, where no link is"
    " followed: replace it by the folder or file itself.",
    errno.ENAMETOOLONG: "Its path is longer than the file system allows: shorten it.",
    errno.ENOSPC: "The disk is full: free some space.",
    errno.EDQUOT: "The quota of ingestd's user is used up: free some space.",
    errno.EROFS: "Its file system is mounted read-only: mount it for writing.",
    errno.EMFILE: "The process may open no more files: raise LimitNOFILE.",
    errno.ENFILE: "The system may open no more files: raise fs.file-max.",
}


def describe_error(error: OSError) -> str:
    """Return the system's message for the error, and what to do, each as a sentence."""
    words = f"{error.strerror or error}."
    if is_not_responding(error):
        return f"{words} Its file system does not respond: check the disk or the server, and mount it again."
    advice = _ADVICE.get(error.errno or 0, "")
    return f"{words} {advice}".strip()


def is_not_responding(error: OSError) -> bool:
    """Return True if the file system itself failed: a dead mount, an unreachable server, a broken disk."""
    return error.errno in _NOT_RESPONDING


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise every file system error as `SourceUnavailable`. ``path``: used in the message if the error names no file."""
    try:
        yield
    except OSError as error:
        raise SourceUnavailable(f"{_named(error) or path} can't be used: {describe_error(error)}") from error


def temporary_file() -> BufferedRandom:
    """Return a new unnamed file in the system's temporary folder.

    The file has a buffer: without it, a write to a disk that is nearly full stores a part of the data and reports no error.

    Raises:
        SourceUnavailable: the file can't be created. A FileNotFoundError would mean that a file of the source is absent.
    """
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise SourceUnavailable(
            f"The system's temporary folder (TMPDIR) can't be used: {describe_error(error)}"
        ) from error


def list_names(names: Sequence[str], most: int = 5) -> str:
    """Return the first ``most`` names as a list for a sentence, and the number of further names."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def real_path(path: Path) -> Path:
    """Return the absolute path with resolved links. A link that leads to itself is kept."""
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError for a loop


def _named(error: OSError) -> str:
    return os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
