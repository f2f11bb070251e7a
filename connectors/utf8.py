"""A check whether bytes or a text are UTF-8."""

from __future__ import annotations


def is_utf8(data: bytes | str) -> bool:
    """Return True if bytes are UTF-8, or if a text has no lone surrogate. A lone surrogate is a byte that was not UTF-8."""
    if data.isascii():
        return True
    try:
        _ = data.decode() if isinstance(data, bytes) else data.encode()
    except UnicodeError:
        return False
    return True
