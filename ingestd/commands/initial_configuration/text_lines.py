"""The pattern of the lines of a log: a time, a level, and the rest of the line. Performs no I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_TIMES = (
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?",
    r"\d{2}\.\d{2}\.\d{4} \d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?",
    r"\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}(?:[.,]\d+)?",
    r"[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}",
)
_LEVEL = r"\[?(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\]?:?"
_NAMED = r"(?P<name>[^\W\d_][^=:\s]*)\s*[=:]\s*(?P<value>\S+)(?P<rest>.*)"
_MEASURED = r"[^\W\d_][^=:\s]*\s*(?:=\s*\S|:\s*[+-]?[.,]?\d)"
"""A name with a value. If a text without a number follows a word and a colon, the word is the program that wrote the line."""
_REST = r"(?P<message>.*)"
_MOST = 0.9
_SOME = 0.3


class LinePattern(msgspec.Struct, frozen=True, kw_only=True):
    """The settings ``pattern`` and ``multiline`` of the format ``text``. ``multiline``: empty if each line is a record."""

    pattern: str
    multiline: str = ""


def find_pattern(lines: Sequence[str]) -> LinePattern | None:
    """Return the pattern of lines that begin with a time; None if the first line has no time, or too few lines have one.

    Lines without a time continue the line above.
    """
    for time in _TIMES:
        start = rf"\[?(?P<time>{time})\]?"
        timed = [line for line in lines if re.match(start, line)]
        if not lines or len(timed) < _SOME * len(lines) or not re.match(start, lines[0]):
            continue
        several = len(timed) < len(lines)
        pattern, named = start, False
        for part, proof in ((_LEVEL, _LEVEL), (_NAMED, _MEASURED)):
            if sum(re.match(rf"{pattern}\s+{proof}", line) is not None for line in timed) >= _MOST * len(timed):
                pattern, named = rf"{pattern}\s+{part}", part == _NAMED
        return LinePattern(
            pattern=pattern if named else rf"{pattern}\s+{_REST}", multiline=rf"^\[?{time}" if several else ""
        )
    return None
