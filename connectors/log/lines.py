"""Line ends in bytes of any encoding, and those bytes as UTF-8."""

from __future__ import annotations

import io
from typing import BinaryIO, cast

from connectors.formats.text import Encoding, TextFile, encoding_by_name


class LineScanner:
    """Finds the ends of lines in one encoding. ``width``: the number of bytes of a line feed."""

    def __init__(self, encoding: str) -> None:
        self._encoding: Encoding = encoding_by_name(encoding)
        wide = {"utf-16": 2, "utf-32": 4}.get(self._encoding.codec[:6], 1)
        self._feed = (10).to_bytes(wide, "big" if self._encoding.codec.endswith("be") else "little")
        self.width = wide
        self.encoding = self._encoding.name
        self.is_utf8 = self._encoding.is_utf8

    def last_end(self, data: bytes) -> int:
        """Return the offset behind the last line feed; 0 if there is none."""
        at = data.rfind(self._feed)
        while at >= 0 and at % self.width:
            at = data.rfind(self._feed, 0, at + self.width - 1)
        return at + self.width if at >= 0 else 0

    def end_of(self, data: bytes, count: int) -> int:
        """Return the offset behind the first ``count`` line feeds, which must exist."""
        end = 0
        for _ in range(count):
            end = self.first_end(data, end)
        return end

    def first_end(self, data: bytes, start: int = 0) -> int:
        """Return the offset behind the first line feed from ``start`` on; 0 if there is none."""
        at = data.find(self._feed, start)
        while at >= 0 and at % self.width:
            at = data.find(self._feed, at + 1)
        return at + self.width if at >= 0 else 0

    def utf8(self, data: bytes) -> bytes:
        """Return the text as UTF-8.

        Bytes that are invalid in the encoding become bytes that are invalid in UTF-8.
        """
        if self._encoding.is_utf8:
            return data
        text = TextFile(cast("BinaryIO", io.BytesIO()), data, self._encoding, ended=True)
        return b"".join(iter(lambda: text.read(len(data)), b""))
