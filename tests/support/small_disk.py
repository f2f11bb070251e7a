"""A small file system that a test fills and frees: a tmpfs or, if mounting is not permitted, a limit of file sizes."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class MountedDisk:
    """A tmpfs. After `fill`, no byte is free."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, _pid: int) -> None:
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        ballast.write(b"x" * size)
                except OSError as error:
                    assert error.strerror == "No space left on device"  # noqa: PT017 - only this error ends the loop

    def free(self, _pid: int) -> None:
        self._ballast.unlink()


class LimitedFiles:
    """Prevents writes beyond the first page of a file. The disk is not full, but each write of SQLite fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def fill(self, pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, self._hard))

    def free(self, pid: int) -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (self._hard, self._hard))


Disk = MountedDisk | LimitedFiles


@contextmanager
def small_disk(folder: Path, *, megabytes: int = 4, mounted: bool = True) -> Iterator[Disk]:
    """Yield a disk at ``folder``, with limited file sizes if mounting is not permitted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(folder)]
    if not mounted or os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield LimitedFiles(folder)
        return
    try:
        yield MountedDisk(folder)
    finally:
        # --lazy, because a daemon that a failed test has killed may still have open files.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
