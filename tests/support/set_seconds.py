"""A clock in seconds that a test sets."""

from __future__ import annotations


class SetSeconds:
    """A clock that a call reads; ``now`` changes only by a test."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now
