"""Long output of lines."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ingestd.process.terminal_text import echo

_LINES = 1_000


def echo_lines(lines: Iterable[str]) -> int:
    """Print lines and return their number. A thousand are printed at once, because `echo` flushes each time."""
    count = 0
    remaining = iter(lines)
    while found := list(islice(remaining, _LINES)):
        echo("\n".join(found))
        count += len(found)
    return count
