"""The process's limit of open files: raised as far as the kernel allows; some are reserved."""

from __future__ import annotations

import resource
from typing import Final

RESERVED: Final = 64
"""Descriptors that clients' connections may not use: for the operators' listener, the log, the database and files."""

_MOST: Final = 1_048_576


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one; return the limit that now applies."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # not permitted: the present limit must suffice
            return soft
        return wanted
    return _MOST if soft == resource.RLIM_INFINITY else soft


def descriptor_limit() -> int:
    """Return the soft limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else soft


def connection_capacity(wanted: int, descriptors: int) -> int:
    """Return how many of the ``wanted`` connections fit into the limit of open files; at least one.

    A connection takes one descriptor. Besides `RESERVED`, as many again stay free for files that requests open.
    """
    return max(1, min(wanted, descriptors - 2 * RESERVED))
