"""Where the control socket of a state file is.

The kernel takes a socket's path of at most 107 bytes, and state files lie deeper than that. So the folder is opened and the
socket addressed through that handle, whose path is short whatever the folder is called.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def socket_file(state: Path) -> Path:
    """The socket beside a state file."""
    return state.with_name(state.name + ".control")


@contextmanager
def short_address(file: Path) -> Iterator[str]:
    """A path of the same file that a socket address can hold, while the context is open.

    Raises:
        OSError: the folder can't be opened.
    """
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)
