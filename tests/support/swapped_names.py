"""Exchanges the name of a file in a drop folder, as a person may who can only write there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECRET = "part,mass\nSECRET,1\n"
"""The content of a file that the person may not read."""


def by_link(path: Path, secret: Path) -> None:
    """Put a symbolic link to the other file in place of the file."""
    path.unlink(missing_ok=True)
    path.symlink_to(secret)


def by_hard_link(path: Path, secret: Path) -> None:
    """Put the other file itself in place of the file."""
    path.unlink(missing_ok=True)
    os.link(secret, path)


def by_pipe(path: Path, _: Path) -> None:
    """Put a pipe without a writer in place of the file."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


SWAPS = [by_link, by_hard_link, by_pipe]


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """Return the result of a call that must not block."""
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert result, "the call hangs, or raised"
    return result[0]
