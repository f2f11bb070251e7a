"""Whether the data folder takes what is written to it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from workspaced.core.problems import UnavailableProblem


def try_disk(folder: Path) -> None:
    """Write a file and flush it.

    Raises:
        UnavailableProblem: the folder can't be written.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ready-") as probe:
            probe.write(b"ready")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise UnavailableProblem(
            "disk_not_writable", f"The data folder can't be written ({error.strerror})."
        ) from error
