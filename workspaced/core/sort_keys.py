"""How people order texts: 2 before 10, and numbers by their size. Performs no I/O.

PostgreSQL has the same rules as functions of these names, in the initial migration.
"""

from __future__ import annotations

import re
from typing import Final

NUMBER_CHARACTERS: Final = 40
"""The longest text that is read as a number."""
_DIGITS: Final = 20
_RUN: Final = re.compile(r"[0-9]+")
NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")


def number_of(text: str | None) -> float | None:
    """Return the number that the whole text is, such as ``-1.5e3``; None if it is not a number, or has a unit."""
    if text is None or len(text) > NUMBER_CHARACTERS or not NUMBER.fullmatch(text):
        return None
    return float(text)


def natural_key(text: str) -> str:
    """Return a text that sorts as people expect: each run of digits has at least 20 of them."""
    return _RUN.sub(lambda run: run[0].lstrip("0").zfill(_DIGITS), text)
