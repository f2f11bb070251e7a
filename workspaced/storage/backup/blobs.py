"""The bytes of files, which are named by their content: a file with the same name has the same bytes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from workspaced.storage.disk import flush

_SHARD = re.compile(r"[0-9a-f]{2}")


@contextmanager
def copied_bytes(blobs: Path, target: Path) -> Iterator[Callable[[], int]]:
    """Prevent deletions in the folder during the block; yield a function that copies all bytes that exist when it is called.

    Each shard is held with the shared lock that excludes the sweep. Uploads continue.

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
            hold()  # shards that were added since
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
        flush(copied)
        count += 1
    flush(target)
    return count
