"""The path of the control socket.

The path in a Unix socket address has at most 107 bytes, and the path of a state file may be longer. So the address contains a
file descriptor of the socket's folder (/proc/self/fd/N), which is always short.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def socket_file(state: Path) -> Path:
    """Return the path of the socket of a state file, in the same folder."""
    return state.with_name(state.name + ".control")


@contextmanager
def short_address(file: Path) -> Iterator[str]:
    """Yield a short path of the same file, valid while the context is open.

    Raises:
        OSError: the folder can't be opened.
    """
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)
