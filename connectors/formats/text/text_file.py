"""A text file as a stream of UTF-8, whatever its encoding.

A byte that is invalid in the encoding must reject its record and never become another character. It becomes a lone surrogate,
which is invalid in UTF-8, too. So readers detect it in the same way as an invalid byte of a UTF-8 file.
"""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO

from connectors.formats.text.encoding import (
    DETECT,
    SAMPLE_BYTES,
    Encoding,
    detect_encoding,
    encoding_by_mark,
    encoding_by_name,
)
from ingestd.sdk import NOTICE

_CUT = "Its last line has no line end, so the file may be cut off there. The line was read as it is."


class TextFile:
    """A file as UTF-8 without byte order mark. ``beginning``: the bytes that were already read from the file."""

    def __init__(self, file: BinaryIO, beginning: bytes, encoding: Encoding, *, ended: bool) -> None:
        self.encoding = encoding
        self._file = file
        self._begun = beginning[encoding.mark :]
        self._ended = ended
        self._last = b""
        self._decoder = None if encoding.is_utf8 else codecs.getincrementaldecoder(encoding.codec)(_REPLACE_BAD_BYTES)

    @property
    def facts(self) -> dict[str, str]:
        """The facts about the encoding and, once the file was read to its end, about its last line."""
        facts = self.encoding.facts
        if self._ended and not self._begun and self._last not in {b"", b"\n", b"\r"}:
            facts[NOTICE] = " ".join([*([facts[NOTICE]] if NOTICE in facts else []), _CUT])
        return facts

    def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes of the file, and return them as UTF-8, which may be longer; no bytes at the end."""
        text = self._read(size)
        self._last = text[-1:] or self._last
        return text

    def _read(self, size: int) -> bytes:
        if self._decoder is None:
            return self._take(size)
        while not self._ended or self._begun:
            piece = self._take(size)
            text = self._decoder.decode(piece, final=not piece)
            if text or not piece:
                return text.encode("utf-8", "surrogatepass")
        return b""

    def seek(self, offset: int) -> None:
        """Continue from this offset in the file, if the file is UTF-8.

        Raises:
            io.UnsupportedOperation: the file is not UTF-8.
        """
        if self._decoder is not None:
            raise io.UnsupportedOperation(f"{self.encoding.name} can only be read from the start")
        self._file.seek(offset)
        self._begun, self._ended = b"", False

    def _take(self, size: int) -> bytes:
        if self._begun:
            piece, self._begun = self._begun[:size], self._begun[size:]
            return piece
        if self._ended:
            return b""
        piece = self._file.read(size)
        self._ended = not piece
        return piece


def open_text(file: BinaryIO, encoding: str = DETECT) -> TextFile:
    """Open ``file``, at its start, as UTF-8.

    A byte order mark determines the encoding if it belongs to the family of the configured encoding. The mark of UTF-8
    always determines it, because text in another encoding does not begin with these bytes.
    """
    beginning = b""
    while len(beginning) < SAMPLE_BYTES and (more := file.read(SAMPLE_BYTES - len(beginning))):
        beginning += more
    ended = len(beginning) < SAMPLE_BYTES
    if encoding == DETECT:
        return TextFile(file, beginning, detect_encoding(beginning, whole=ended), ended=ended)
    chosen, mark = encoding_by_name(encoding), encoding_by_mark(beginning)
    family = chosen.codec.removesuffix("-sig").replace("_", "-")
    if mark is not None and (mark.is_utf8 or mark.codec.startswith(family)):
        chosen = mark
    return TextFile(file, beginning, chosen, ended=ended)


def _replace_bad_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), error.end


_REPLACE_BAD_BYTES = "ingestd.mark-bad-bytes"
codecs.register_error(_REPLACE_BAD_BYTES, _replace_bad_bytes)
