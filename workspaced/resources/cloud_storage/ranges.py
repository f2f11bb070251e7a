"""A part of a file instead of all of it (RFC 9110, 14): one range of bytes, honoured only on the version that is meant."""

from __future__ import annotations

import re
from typing import NamedTuple

from workspaced.core.problems import RangeNotSatisfiable

_RANGE = re.compile(
    r"bytes[ \t]*=[ \t]*(?:(?P<first>\d{1,18})-(?P<last>\d{1,18})?|-(?P<suffix>\d{1,18}))[ \t]*", re.ASCII
)


class ByteRange(NamedTuple):
    """The bytes from ``start``, so many; ``whole``: it is all of them, asked for without a range."""

    start: int
    length: int
    whole: bool


def stretch(range_header: str | None, if_range: str | None, *, etag: str, size: int) -> ByteRange:
    """What is to be sent of ``size`` bytes. Several ranges, other units and what can't be read are as if not asked for.

    Raises:
        RangeNotSatisfiable: the range begins after the end.
    """
    all_of_it = ByteRange(start=0, length=size, whole=True)
    match = _RANGE.fullmatch(range_header or "")
    # A date in If-Range can't be compared exactly, and a weak tag may not: both get the whole.
    if not match or (if_range is not None and if_range.strip() != etag):
        return all_of_it
    if match["suffix"] is not None:
        length = min(int(match["suffix"]), size)
        if not length:
            raise RangeNotSatisfiable(size)
        return ByteRange(start=size - length, length=length, whole=False)
    first = int(match["first"])
    last = min(int(match["last"]), size - 1) if match["last"] is not None else size - 1
    if match["last"] is not None and int(match["last"]) < first:
        return all_of_it
    if first >= size:
        raise RangeNotSatisfiable(size)
    return ByteRange(start=first, length=last - first + 1, whole=False)
