"""Which encoding a text file has: as declared, by its byte order mark, else by what its bytes prove or make likely.

A wrong guess changes values silently, so whatever is UTF-8, or UTF-8 with some bad rows, is UTF-8: its bad rows are rejected.
Only text of which no line is UTF-8 is taken for an older encoding, and that is marked as a guess.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator

from connectors.formats.text.legacy import guess_legacy
from ingestd.sdk import NOTICE

DETECT = "detect"
SAMPLE_BYTES = 2**20

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that one's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SPOKEN = {
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
# A character of two bytes may pass for one of UTF-8, so in such text one line in so many may, if it has no other.
_TWO_BYTES = frozenset({"cp932", "euc_jp", "euc_kr", "cp949", "big5", "gb18030"})
_ONE_SHORT_SEQUENCE = re.compile(rb"[\x00-\x7f]*[\xc2-\xdf][\x80-\xbf][\x00-\x7f]*")
_BY_CHANCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """``name`` for people and the record, ``codec`` for Python, ``mark``: how many bytes of byte order mark to skip.

    ``guessed``: nothing in the file states or proves it.
    """

    name: str
    codec: str
    mark: int = 0
    guessed: bool = False

    @property
    def facts(self) -> dict[str, str]:
        """What is to be on record of it."""
        if not self.guessed:
            return {"file.encoding": self.name}
        notice = f"Its encoding is a guess: {self.name}. If letters are wrong, set encoding and drop the file again."
        return {"file.encoding": self.name, "file.encoding_guessed": "yes", NOTICE: notice}

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes can be taken as they are."""
        return self.codec in {"utf-8", "ascii"}


def encoding_by_name(name: str) -> Encoding:
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
        encoding_by_name(name)
    return name


EncodingName = Annotated[str, AfterValidator(_known)]
"""The name of an encoding in a setting, or ``detect_encoding``."""


def encoding_by_mark(sample: bytes) -> Encoding | None:
    """The encoding that a byte order mark at the start tells."""
    for mark, codec in _MARKS:
        if sample.startswith(mark):
            return Encoding(name=codec, codec=codec, mark=len(mark))
    return None


def detect_encoding(sample: bytes, *, whole: bool) -> Encoding:
    """The encoding of a file that begins with ``sample``; ``whole``: that is all of it."""
    if found := encoding_by_mark(sample):
        return found
    if several_bytes := _four_byte_order(sample) or _two_byte_order(sample):
        return Encoding(name=several_bytes, codec=several_bytes)
    if _is_utf8(sample, whole=whole) or (codec := _legacy(sample, whole=whole)) is None:
        return Encoding(name="utf-8", codec="utf-8")
    return replace(encoding_by_name(codec), guessed=True)


def _legacy(sample: bytes, *, whole: bool) -> str | None:
    """The codec of a sample that is not all UTF-8; None: it is UTF-8 in which some bytes are wrong."""
    lines = sample.splitlines()
    if not whole and len(lines) > 1:
        lines.pop()
    beyond = [line for line in lines if not line.isascii()]
    bad = [line for line in beyond if not _is_utf8(line, whole=True)]
    if not _is_legacy(b"".join(bad)):
        return None
    codec = guess_legacy(bad)
    good = [line for line in beyond if _is_utf8(line, whole=True)]
    by_chance = codec in _TWO_BYTES and all(_ONE_SHORT_SEQUENCE.fullmatch(line) for line in good)
    return codec if not good or (by_chance and len(good) * _BY_CHANCE <= len(bad)) else None


def _four_byte_order(sample: bytes) -> str | None:
    """UTF-32 without a mark shows by three zeros in four bytes."""
    if len(sample) < _LONGEST_SEQUENCE:
        return None
    shares = [part.count(0) / len(part) for part in (sample[at::4] for at in range(4))]
    if min(shares[1:]) > _ZEROS_OF_UTF_32 > shares[0]:
        return "utf-32-le"
    return "utf-32-be" if min(shares[:3]) > _ZEROS_OF_UTF_32 > shares[3] else None


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
