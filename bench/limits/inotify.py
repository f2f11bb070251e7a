"""The minimal latency of the kernel and a thread: from renaming a file until a waiting thread has the file's name."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

_MOVED_TO = 0x80
_CLOSE_ON_EXEC = 0o2000000
_HEAD = struct.Struct("iIII")


def notice_seconds(staged: Sequence[Path], folder: Path) -> list[float]:
    """Move files into a folder, one after the other; return the latency of each move in seconds."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(_CLOSE_ON_EXEC)
    if descriptor < 0 or libc.inotify_add_watch(descriptor, os.fsencode(folder), _MOVED_TO) < 0:
        raise OSError(ctypes.get_errno(), "inotify can't watch", str(folder))
    noticed: SimpleQueue[tuple[str, float]] = SimpleQueue()
    reader = threading.Thread(target=_read, args=(descriptor, len(staged), noticed), daemon=True)
    reader.start()
    taken = []
    for file in staged:
        moved = time.monotonic()
        file.rename(folder / file.name)
        name, at = noticed.get(timeout=10)
        if name != file.name:
            raise OSError(f"inotify reported {name} when {file.name} was moved")
        taken.append(at - moved)
    reader.join()
    os.close(descriptor)
    return taken


def _read(descriptor: int, count: int, noticed: SimpleQueue[tuple[str, float]]) -> None:
    while count > 0:
        data = os.read(descriptor, 65_536)
        at = time.monotonic()
        place = 0
        while place < len(data):
            *_, length = _HEAD.unpack_from(data, place)
            place += _HEAD.size
            noticed.put((os.fsdecode(data[place : place + length].rstrip(b"\0")), at))
            place += length
            count -= 1
