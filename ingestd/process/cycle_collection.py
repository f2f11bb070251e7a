"""Python's search for reference cycles, which a program does without while it starts and ends.

The search goes through all objects again and again while they are created by imports, and once more at the end of the process.
It would find almost nothing: imported modules stay, and the end of the process frees the rest.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

_in_program = False


def begin_program() -> None:
    """Let this process end without a search, and let `paused` take effect. Tests and importers of a package do not call this."""
    global _in_program  # noqa: PLW0603 - a property of the process, like the collector itself
    if not _in_program:
        _in_program = True
        atexit.register(gc.freeze)


@contextmanager
def paused() -> Iterator[None]:
    """Do without a search during the block, which imports modules; later searches leave out what exists at its end."""
    if not (_in_program and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
