"""The processes in which a service of this process converts files."""

from __future__ import annotations

import psutil


def conversion_processes() -> set[int]:
    """Their ids; those that ended and were not waited for yet are among them no more."""
    found = set()
    for child in psutil.Process().children():
        try:
            if "workspaced.resources.cloud_storage.child" in child.cmdline():
                found.add(child.pid)
        except psutil.NoSuchProcess:
            continue
    return found
