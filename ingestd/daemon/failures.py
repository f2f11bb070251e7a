"""Extraction of a state file's error from an exception group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ingestd.core.errors import MirrorError
from ingestd.process.supervision import leaves


@contextmanager
def mirror_failures_alone() -> Iterator[None]:
    """Raise a `MirrorError` alone instead of in the nested exception groups of the task groups."""
    try:
        yield
    except BaseExceptionGroup as group:
        for leaf in leaves(group):
            if isinstance(leaf, MirrorError):
                raise leaf from group
        raise
