"""Python's search for reference cycles, which is off while a program starts and ends.

Python would search all objects repeatedly while imports create objects, and once more at the end of the process. These searches
are useless: imported modules are never freed, and the end of the process frees all memory.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

_in_program = False


def begin_program() -> None:
    """Make this process end without a search, and make `paused` effective.

    Only programs call this, not tests or importers of a package.
    """
    global _in_program  # noqa: PLW0603 - a property of the process, like the collector itself
    if not _in_program:
        _in_program = True
        atexit.register(gc.freeze)


@contextmanager
def paused() -> Iterator[None]:
    """Switch the search off while the context is open. Later searches ignore all objects that exist when it closes."""
    if not (_in_program and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
