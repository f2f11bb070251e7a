"""Replacements of a file in a drop folder by other objects, as an attacker can make who may only write there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECRET = "part,mass\nSECRET,1\n"
"""The content of a file that the attacker may not read."""


def by_link(path: Path, secret: Path) -> None:
    """Replace the file by a symbolic link to the secret file."""
    path.unlink(missing_ok=True)
    path.symlink_to(secret)


def by_hard_link(path: Path, secret: Path) -> None:
    """Replace the file by a hard link to the secret file."""
    path.unlink(missing_ok=True)
    os.link(secret, path)


def by_pipe(path: Path, _: Path) -> None:
    """Replace the file by a pipe without a writer."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


SWAPS = [by_link, by_hard_link, by_pipe]


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """Return the result of a call. Fail if the call takes longer than ``seconds``."""
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert result, "the call hangs, or raised"
    return result[0]
