"""Which encoding a text file has: as declared, by its byte order mark, else by what its bytes prove or make likely.

A wrong guess changes values silently, so little is guessed. Whatever is UTF-8, or UTF-8 with some bad rows, is UTF-8: its bad
rows are parked. Only text whose letters are none of UTF-8's is taken for one of the two legacy encodings that
engineering tools write: Shift-JIS, whose characters stand side by side, or Windows-1252, whose accents stand alone.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

DETECT = "detect"
SAMPLE_BYTES = 2**20

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that one's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SPOKEN = {"cp1252": "windows-1252", "iso8859-1": "latin-1", "cp932": "shift-jis", "utf-8": "utf-8", "ascii": "ascii"}
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_DOUBLE = re.compile(rb"(?:[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc])+")
_LONGEST_SEQUENCE = 4
# Of Japanese text two characters in a row are the rule; of Western text two accented letters in a row are the exception.
_SIDE_BY_SIDE = 1.5
_ZEROS_OF_UTF_16 = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """``name`` for people and the record, ``codec`` for Python, ``mark``: how many bytes of byte order mark to skip."""

    name: str
    codec: str
    mark: int = 0

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes can be taken as they are."""
        return self.codec in {"utf-8", "ascii"}


def named(name: str) -> Encoding:
    """The encoding that a person calls ``name``; Shift-JIS is Microsoft's, which is what is written.

    Raises:
        ValueError: no such text encoding.
    """
    try:
        info = codecs.lookup(name)
        "".encode(name)  # some codecs turn bytes into bytes, or are no encoding of text in files
    except (LookupError, TypeError, ValueError):
        info = None
    if info is None or info.name in {"punycode", "idna", "utf-7", "unicode_escape", "raw_unicode_escape", "undefined"}:
        raise ValueError(
            f"'{name}' is no encoding of text that is known here; common ones are utf-8, utf-16, windows-1252, latin-1 and"
            " shift-jis"
        )
    codec = "cp932" if info.name in {"shift_jis", "cp932"} else info.name
    return Encoding(name=_SPOKEN.get(codec, codec), codec=codec)


def _known(name: str) -> str:
    if name != DETECT:
        named(name)
    return name


EncodingName = Annotated[str, AfterValidator(_known)]
"""The name of an encoding in a setting, or ``detect``."""


def marked(sample: bytes) -> Encoding | None:
    """The encoding that a byte order mark at the start tells."""
    for mark, codec in _MARKS:
        if sample.startswith(mark):
            return Encoding(name=codec, codec=codec, mark=len(mark))
    return None


def detect(sample: bytes, *, whole: bool) -> Encoding:
    """The encoding of a file that begins with ``sample``; ``whole``: that is all of it."""
    if found := marked(sample):
        return found
    if two_bytes := _two_byte_order(sample):
        return Encoding(name=two_bytes, codec=two_bytes)
    if _is_utf8(sample, whole=whole) or not _is_legacy(sample):
        return Encoding(name="utf-8", codec="utf-8")
    return named("shift-jis" if _is_japanese(sample, whole=whole) else "windows-1252")


def _two_byte_order(sample: bytes) -> str | None:
    """UTF-16 without a mark shows by the zero in every second byte of Western text."""
    if b"\0" not in sample or len(sample) < _LONGEST_SEQUENCE:
        return None
    even, odd = sample[::2], sample[1::2]
    first, second = even.count(0) / len(even), odd.count(0) / len(odd)
    if second > _ZEROS_OF_UTF_16 and first < _ZEROS_OF_UTF_16 / 4:
        return "utf-16-le"
    if first > _ZEROS_OF_UTF_16 and second < _ZEROS_OF_UTF_16 / 4:
        return "utf-16-be"
    return None


def _is_utf8(sample: bytes, *, whole: bool) -> bool:
    if sample.isascii():
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _is_legacy(sample: bytes) -> bool:
    """Whether the letters beyond ASCII are mostly not UTF-8's: else it is UTF-8 in which some bytes are wrong."""
    sequences = _SEQUENCE.findall(sample)
    stray = sum(byte >= 0x80 for byte in sample) - sum(map(len, sequences))
    return stray > len(sequences)


def _is_japanese(sample: bytes, *, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder("cp932")().decode(sample, final=whole)
    except UnicodeDecodeError:
        return False
    runs = _DOUBLE.findall(sample)
    return bool(runs) and sum(map(len, runs)) / 2 / len(runs) >= _SIDE_BY_SIDE
