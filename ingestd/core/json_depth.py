"""One limit for the nesting of JSON, because decoders differ: 1,000 levels in Python 3.11, 50,000 and more in 3.14."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

LEVELS: Final = 600

# The pattern is possessive and does not require the closing quote. So it never backtracks, and its time is linear.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = {byte: 1 if byte in b"[{" else -1 for byte in b"[]{}"}


def require_depth(text: bytes) -> None:
    """Check that a JSON text is nested at most `LEVELS` deep.

    Raises:
        RecursionError: the text is nested more deeply.
    """
    if text.count(b"[") + text.count(b"{") <= LEVELS:
        return
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > LEVELS:
        raise RecursionError
