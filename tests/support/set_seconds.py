"""A clock in seconds that a test sets."""

from __future__ import annotations


class SetSeconds:
    """A clock whose time is the return value of a call. Only the test changes ``now``."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now
