"""A clock in seconds that a test sets."""

from __future__ import annotations


class SetSeconds:
    """A clock: a call returns its time ``now``, which only the test changes."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now
