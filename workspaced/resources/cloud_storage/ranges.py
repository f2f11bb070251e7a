"""Range requests (RFC 9110, 14): one range of bytes, of the version that If-Range names."""

from __future__ import annotations

import re
from typing import NamedTuple

from workspaced.core.problems import RangeNotSatisfiable

_RANGE = re.compile(
    r"bytes[ \t]*=[ \t]*(?:(?P<first>\d{1,18})-(?P<last>\d{1,18})?|-(?P<suffix>\d{1,18}))[ \t]*", re.ASCII
)


class ByteRange(NamedTuple):
    """``length`` bytes from ``start`` on; ``whole``: the response is the whole file."""

    start: int
    length: int
    whole: bool


def select_range(range_header: str | None, if_range: str | None, *, etag: str, size: int) -> ByteRange:
    """Return the range to send of ``size`` bytes; for several ranges or a malformed header, the whole.

    Raises:
        RangeNotSatisfiable: the range starts after the last byte.
    """
    whole = ByteRange(start=0, length=size, whole=True)
    match = _RANGE.fullmatch(range_header or "")
    # A date in If-Range can't be compared exactly, and a weak tag may not be compared: both select the whole.
    if not match or (if_range is not None and if_range.strip() != etag):
        return whole
    if match["suffix"] is not None:
        length = min(int(match["suffix"]), size)
        if not length:
            raise RangeNotSatisfiable(size)
        return ByteRange(start=size - length, length=length, whole=False)
    first = int(match["first"])
    last = min(int(match["last"]), size - 1) if match["last"] is not None else size - 1
    if match["last"] is not None and int(match["last"]) < first:
        return whole
    if first >= size:
        raise RangeNotSatisfiable(size)
    return ByteRange(start=first, length=last - first + 1, whole=False)
