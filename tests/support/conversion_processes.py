"""The conversion processes of a service that runs in this process."""

from __future__ import annotations

import psutil


def conversion_processes() -> set[int]:
    """Return the process ids of the running conversion processes."""
    found = set()
    for child in psutil.Process().children():
        try:
            if "workspaced.resources.cloud_storage.child" in child.cmdline():
                found.add(child.pid)
        except psutil.NoSuchProcess:
            continue
    return found
