"""The encoding of a text file: as configured, by its byte order mark, else detected from its bytes.

A wrong guess changes values silently. So a file that is UTF-8 except for some rows counts as UTF-8, and those rows are
rejected. Only if (almost) no line with bytes beyond ASCII is UTF-8, an older encoding is assumed and reported as a guess.
"""

from __future__ import annotations

import codecs
import re
from typing import Annotated

import msgspec
from msgspec.structs import replace
from pydantic import AfterValidator

from connectors.formats.text.legacy import guess_legacy
from ingestd.sdk import NOTICE

DETECT = "detect"
SAMPLE_BYTES = 2**20

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, because its mark begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DISPLAY_NAMES = {
    **{f"cp{number}": f"windows-{number}" for number in range(1250, 1259)},
    "iso8859-1": "latin-1",
    "iso8859-2": "iso-8859-2",
    "cp932": "shift-jis",
    "euc_jp": "euc-jp",
    "euc_kr": "euc-kr",
}
_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_LONGEST_SEQUENCE = 4
_ZEROS_OF_UTF_16 = 0.4
_ZEROS_OF_UTF_32 = 0.9
_TWO_BYTES = frozenset({"cp932", "euc_jp", "euc_kr", "cp949", "big5", "gb18030"})
_ONE_SHORT_SEQUENCE = re.compile(rb"[\x00-\x7f]*[\xc2-\xdf][\x80-\xbf][\x00-\x7f]*")
# In text with two bytes for each character, one line in 20 may be valid UTF-8 by coincidence.
_LINES_PER_COINCIDENCE = 20


class Encoding(msgspec.Struct, frozen=True, kw_only=True):
    """An encoding: ``name`` for people, ``codec`` for Python. ``mark``: the length of its byte order mark in bytes."""

    name: str
    codec: str
    mark: int = 0
    guessed: bool = False

    @property
    def facts(self) -> dict[str, str]:
        """The facts about the encoding that the entries keep."""
        if not self.guessed:
            return {"file.encoding": self.name}
        notice = (
            f"Its encoding is a guess: {self.name}. If letters are wrong, set encoding: the file is then read again. If it was"
            " archived, also drop it again."
        )
        return {"file.encoding": self.name, "file.encoding_guessed": "yes", NOTICE: notice}

    @property
    def is_utf8(self) -> bool:
        """True if the bytes need no conversion."""
        return self.codec in {"utf-8", "ascii"}


def encoding_by_name(name: str) -> Encoding:
    """Return the encoding of that name. Shift-JIS means the variant of Microsoft, because programs write that variant.

    Raises:
        ValueError: there is no text encoding of that name.
    """
    try:
        info = codecs.lookup(name)
        "".encode(name)  # some codecs convert bytes to bytes, or are no encoding of text files
    except (LookupError, TypeError, ValueError):
        info = None
    if info is None or info.name in {"punycode", "idna", "utf-7", "unicode_escape", "raw_unicode_escape", "undefined"}:
        raise ValueError(
            f"'{name}' is no known text encoding; common ones are utf-8, utf-16, windows-1252, latin-1 and shift-jis"
        )
    codec = "cp932" if info.name in {"shift_jis", "cp932"} else info.name
    return Encoding(name=_DISPLAY_NAMES.get(codec, codec), codec=codec)


def _check_encoding(name: str) -> str:
    if name != DETECT:
        encoding_by_name(name)
    return name


EncodingName = Annotated[str, AfterValidator(_check_encoding)]
"""The name of an encoding in a setting, or ``detect``."""


def encoding_by_mark(sample: bytes) -> Encoding | None:
    """Return the encoding of the byte order mark at the start; None without a mark."""
    for mark, codec in _MARKS:
        if sample.startswith(mark):
            return Encoding(name=codec, codec=codec, mark=len(mark))
    return None


def detect_encoding(sample: bytes, *, whole: bool) -> Encoding:
    """Return the encoding of a file that begins with ``sample``; ``whole``: the sample is the whole file."""
    if found := encoding_by_mark(sample):
        return found
    if several_bytes := _four_byte_order(sample) or _two_byte_order(sample):
        return Encoding(name=several_bytes, codec=several_bytes)
    if _is_utf8(sample, whole=whole) or (codec := _detect_legacy(sample, whole=whole)) is None:
        return Encoding(name="utf-8", codec="utf-8")
    return replace(encoding_by_name(codec), guessed=True)


def _detect_legacy(sample: bytes, *, whole: bool) -> str | None:
    """Return the codec of a sample that is not valid UTF-8; None if it is UTF-8 with some invalid bytes."""
    lines = sample.splitlines()
    if not whole and len(lines) > 1:
        lines.pop()
    beyond = [line for line in lines if not line.isascii()]
    bad = [line for line in beyond if not _is_utf8(line, whole=True)]
    if not _is_legacy(b"".join(bad)):
        return None
    codec = guess_legacy(bad)
    good = [line for line in beyond if _is_utf8(line, whole=True)]
    is_coincidence = codec in _TWO_BYTES and all(_ONE_SHORT_SEQUENCE.fullmatch(line) for line in good)
    return codec if not good or (is_coincidence and len(good) * _LINES_PER_COINCIDENCE <= len(bad)) else None


def _four_byte_order(sample: bytes) -> str | None:
    """Detect UTF-32 without a mark by three zeros in four bytes."""
    if len(sample) < _LONGEST_SEQUENCE:
        return None
    shares = [part.count(0) / len(part) for part in (sample[at::4] for at in range(4))]
    if min(shares[1:]) > _ZEROS_OF_UTF_32 > shares[0]:
        return "utf-32-le"
    return "utf-32-be" if min(shares[:3]) > _ZEROS_OF_UTF_32 > shares[3] else None


def _two_byte_order(sample: bytes) -> str | None:
    """Detect UTF-16 without a mark by the zero in every second byte of Western text."""
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
    """Return True if most bytes beyond ASCII are not UTF-8; else the sample is UTF-8 with some invalid bytes."""
    sequences = _SEQUENCE.findall(sample)
    stray = sum(byte >= 0x80 for byte in sample) - sum(map(len, sequences))
    return stray > len(sequences)
