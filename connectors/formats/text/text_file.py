"""A text file as a stream of UTF-8, whatever it is written in.

A byte that the encoding does not know must park its record and never turn into another character. It becomes a lone
surrogate, which is no UTF-8 either, so that readers find it by the same look as the stray bytes of a UTF-8 file.
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


class TextFile:
    """The rest of a file as UTF-8 without byte order mark; ``read`` as of a binary file."""

    def __init__(self, file: BinaryIO, begun: bytes, encoding: Encoding, *, ended: bool) -> None:
        self.encoding = encoding
        self._file = file
        self._begun = begun[encoding.mark :]
        self._ended = ended
        self._decoder = None if encoding.is_utf8 else codecs.getincrementaldecoder(encoding.codec)(_MARK_BAD_BYTES)

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; nothing at the end. More may come where one byte of the file is several of UTF-8."""
        if self._decoder is None:
            return self._take(size)
        while not self._ended or self._begun:
            piece = self._take(size)
            text = self._decoder.decode(piece, final=not piece)
            if text or not piece:
                return text.encode("utf-8", "surrogatepass")
        return b""

    def seek(self, offset: int) -> None:
        """Go on from this offset in the file; only where the file is UTF-8.

        Raises:
            io.UnsupportedOperation: it is not.
        """
        if self._decoder is not None:
            raise io.UnsupportedOperation(f"{self.encoding.name} is read from the start only")
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
    """``file``, which stands at its start, as UTF-8; a byte order mark of the declared encoding is skipped, too."""
    begun = b""
    while len(begun) < SAMPLE_BYTES and (more := file.read(SAMPLE_BYTES - len(begun))):
        begun += more
    ended = len(begun) < SAMPLE_BYTES
    if encoding == DETECT:
        return TextFile(file, begun, detect_encoding(begun, whole=ended), ended=ended)
    chosen, mark = encoding_by_name(encoding), encoding_by_mark(begun)
    family = mark is not None and mark.codec.startswith(chosen.codec.removesuffix("-sig").replace("_", "-"))
    return TextFile(file, begun, mark if mark is not None and family else chosen, ended=ended)


def _mark_bad_bytes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), error.end


_MARK_BAD_BYTES = "ingestd.mark-bad-bytes"
codecs.register_error(_MARK_BAD_BYTES, _mark_bad_bytes)
