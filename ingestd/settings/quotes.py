"""Maps characters of a value to columns in the file, with quotes and escapes."""

from __future__ import annotations

_ESCAPE_LENGTHS = {"x": 4, "u": 6, "U": 10}


def offsets_in(line: str, column: int, style: str | None, text: str) -> tuple[int, ...]:
    """Return the distance from ``column`` of each character of ``text``, which is written in ``line`` at ``column``.

    ``style`` is the quote, or None or empty for a plain value. Returns an empty tuple if text and line do not match (a
    value of several lines, a byte order mark before the first line).
    """
    if not style:
        offsets = tuple(range(len(text)))
        return offsets if line[column : column + len(text)] == text else ()
    if style not in {"'", '"'} or line[column : column + 1] != style:
        return ()
    found: list[int] = []
    at = column + 1
    while at < len(line) and len(found) < len(text):
        found.append(at - column)
        at += _width(line, at, style)
    return tuple(found) if len(found) == len(text) else ()


def _width(line: str, at: int, quote: str) -> int:
    if quote == "'":
        return 2 if line[at : at + 2] == "''" else 1
    return _ESCAPE_LENGTHS.get(line[at + 1 : at + 2], 2) if line[at] == "\\" else 1
