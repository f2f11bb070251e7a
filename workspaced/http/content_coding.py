"""Bodies that come compressed (RFC 9110, 8.4): gzip, unpacked as it arrives and never further than the limit.

That it is taken is announced as RFC 9110, 12.5.3 has it: ``Accept-Encoding: gzip`` in an answer. A kilobyte of gzip can hold a
megabyte, so the limit of a body holds for what it unpacks to, and what would be more is not unpacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from starlette.datastructures import Headers

from workspaced.core.problems import Invalid, TooLargeProblem, UnsupportedCoding

HEADER = "Accept-Encoding"
TAKEN = "gzip"

_GZIP = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 1_048_576


class Plain:
    """A body as it is."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._length = 0

    def take(self, part: bytes) -> bytes:
        """The next bytes.

        Raises:
            TooLargeProblem: there are more than the limit.
        """
        self._length += len(part)
        if self._length > self._limit:
            raise TooLargeProblem(self._limit)
        return part

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """As `take`, in pieces of bounded size."""
        yield self.take(part)

    def finish(self) -> None:
        """The body has ended."""


class Unzipped:
    """A body that comes as one gzip member."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._length = 0
        self._stream = zlib.decompressobj(_GZIP)

    def take(self, part: bytes) -> bytes:
        """What the next bytes unpack to.

        Raises:
            TooLargeProblem: it would be more than the limit; no more than that is unpacked.
            Invalid: these are no gzip, or something follows it.
        """
        return b"".join(self.pieces(part))

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """As `take`, in pieces of bounded size."""
        if self._stream.eof and part:
            raise _no_gzip()
        while True:
            most = min(_PIECE_BYTES, self._limit - self._length + 1)
            try:
                made = self._stream.decompress(part, most)
            except zlib.error:
                raise _no_gzip() from None
            self._length += len(made)
            if self._length > self._limit:
                raise TooLargeProblem(self._limit)
            if self._stream.unused_data:
                raise _no_gzip()
            yield made
            part = self._stream.unconsumed_tail
            if self._stream.eof or (not part and len(made) < most):
                return

    def finish(self) -> None:
        """The body has ended.

        Raises:
            Invalid: it ended before the gzip did.
        """
        if not self._stream.eof:
            raise _no_gzip()


def longest_packed(headers: Headers, *, limit: int) -> int:
    """Return how long a body may be that is no longer than ``limit`` when it is unpacked."""
    named = headers.get("Content-Encoding", "").strip().lower()
    return limit if named in {"", "identity"} else limit + limit // 1_000 + 1_024


def coding_of(headers: Headers, *, limit: int) -> Plain | Unzipped:
    """How a body is to be read.

    Raises:
        UnsupportedCoding: it is packed in another way.
    """
    named = headers.get("Content-Encoding", "").strip().lower()
    if named in {"", "identity"}:
        return Plain(limit)
    if named in {"gzip", "x-gzip"}:
        return Unzipped(limit)
    raise UnsupportedCoding(named)


def _no_gzip() -> Invalid:
    return Invalid.at("", "bad_gzip", "The body is said to be packed with gzip, but is not, or not whole.")
