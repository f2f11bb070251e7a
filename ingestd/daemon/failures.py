"""What is left of a group of exceptions when one of them says it all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ingestd.core.errors import MirrorError
from ingestd.process.supervision import leaves


@contextmanager
def mirror_failures_alone() -> Iterator[None]:
    """Raise a state file's failure by itself: every part that stumbles over it wraps it in a task group of its own."""
    try:
        yield
    except BaseExceptionGroup as group:
        for leaf in leaves(group):
            if isinstance(leaf, MirrorError):
                raise leaf from group
        raise
