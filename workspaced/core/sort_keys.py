"""Sort keys for the order that people expect: 2 before 10, and numbers by their value. Performs no I/O.

The initial migration of PostgreSQL defines SQL functions with the same names and rules.
"""

from __future__ import annotations

import re
from typing import Final

NUMBER_CHARACTERS: Final = 40
"""A longer text is not read as a number."""
_DIGITS: Final = 20
_RUN: Final = re.compile(r"[0-9]+")
NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")


def number_of(text: str | None) -> float | None:
    """Return the value of a text that is a number, such as ``-1.5e3``; None for other texts, also for a number with a unit."""
    if text is None or len(text) > NUMBER_CHARACTERS or not NUMBER.fullmatch(text):
        return None
    return float(text)


def natural_key(text: str) -> str:
    """Return a text that sorts as people expect: each run of digits is padded with zeros to 20 digits."""
    return _RUN.sub(lambda run: run[0].lstrip("0").zfill(_DIGITS), text)
