"""The bytes of files: named by their content, so a copy of a name is a copy of the bytes (`workspaced.storage.blobs.disk`)."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_SHARD = re.compile(r"[0-9a-f]{2}")


@contextmanager
def copied_bytes(blobs: Path, target: Path) -> Iterator[Callable[[], int]]:
    """For the block nothing in the folder is dropped; what the block is handed copies all that is there by then.

    Each shard is held with the shared lock that keeps the sweep out. Uploads go on.

    Raises:
        OSError: reading or writing failed.
    """
    with ExitStack() as held:
        known: list[Path] = []

        def hold() -> None:
            for shard in sorted(blobs.iterdir()) if blobs.is_dir() else ():
                if shard not in known and _SHARD.fullmatch(shard.name):
                    descriptor = os.open(shard, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    held.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_SH)
                    known.append(shard)

        def copy() -> int:
            hold()  # shards that came since
            target.mkdir(mode=0o700)
            return sum(_copy(shard, target / shard.name) for shard in known)

        hold()
        yield copy


def _copy(shard: Path, target: Path) -> int:
    target.mkdir(mode=0o700)
    count = 0
    for source in shard.iterdir():
        copied = target / source.name
        shutil.copyfile(source, copied)
        copied.chmod(0o600)
        _flush(copied)
        count += 1
    _flush(target)
    return count


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
