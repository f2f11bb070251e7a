"""The process's limit of open files: raised as far as the system allows, and partly kept for what must go on."""

from __future__ import annotations

import resource
from typing import Final

RESERVED: Final = 64
"""Descriptors that no client's connection may take: for the operators' listener, the log, the database and files."""

_MOST: Final = 1_048_576


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one; return the limit that holds from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # forbidden to this process: what it has must do
            return soft
        return wanted
    return _MOST if soft == resource.RLIM_INFINITY else soft


def descriptor_limit() -> int:
    """Return the soft limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else soft


def connection_capacity(wanted: int, descriptors: int) -> int:
    """Return how many of the ``wanted`` connections the limit of open files has room for; at least one.

    A connection takes one descriptor; as many again as `RESERVED` are left for what requests open while they are served.
    """
    return max(1, min(wanted, descriptors - 2 * RESERVED))
