"""The limit for the joined names of nested fields. This module performs no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_REPEATED: Final = 16
_FREE: Final = 2**20


class NamesTooLong(ValueError):
    """The joined names of a record are too long. The message is the end of a sentence that starts with the record."""


class NameLimit:
    """Counts the characters of the joined names of a record. ``length``: a function that returns the length of the record.

    The joined name of a field holds the names of all objects around it. Without a limit, a record of 100 KB with one long name
    can need gigabytes.
    """

    def __init__(self, length: Callable[[], int]) -> None:
        self._length = length
        self._count = 0
        self._most = _FREE

    def add(self, characters: int) -> None:
        """Count the characters of the joined names in one element, before they are joined.

        Raises:
            NamesTooLong: there are more characters than 1 MiB plus 16 times the length of the record.
        """
        self._count += characters
        if self._count > self._most == _FREE:  # most records need not be measured
            self._most += _REPEATED * self._length()
        if self._count > self._most:
            raise NamesTooLong(
                f"has nested names of more than {self._most} characters in total after they are joined by dots. This is the"
                " limit for a record of this length. Shorten the outer names"
            )
