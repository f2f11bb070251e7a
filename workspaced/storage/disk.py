"""Test whether the data folder is writable."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from workspaced.core.problems import UnavailableProblem


def try_disk(folder: Path) -> None:
    """Write a file and flush it to the disk.

    Raises:
        UnavailableProblem: the folder is not writable.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ready-") as probe:
            probe.write(b"ready")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise UnavailableProblem("disk_not_writable", f"The data folder is not writable ({error.strerror}).") from error
