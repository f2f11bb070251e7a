"""Durable writes to the disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from workspaced.core.problems import UnavailableProblem


def try_disk(folder: Path) -> None:
    """Write a file and flush it to the disk. Raises UnavailableProblem: the folder is not writable."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ready-") as probe:
            probe.write(b"ready")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise UnavailableProblem("disk_not_writable", f"The data folder is not writable ({error.strerror}).") from error


def flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk. Raises OSError: the flush failed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
