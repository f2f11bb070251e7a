"""The memory of a process that works for hours in several threads."""

from __future__ import annotations

import ctypes

_ARENA_MAX = -8
"""M_ARENA_MAX of glibc's malloc.h."""


def share_heap() -> bool:
    """Let all threads share one heap of the C library, for good; return False if this library has no such choice.

    By default each thread gets a heap of its own, which keeps what was freed in it (decision record 0026). Call it before other
    threads begin.
    """
    try:
        choose = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    return bool(choose(_ARENA_MAX, 1))
