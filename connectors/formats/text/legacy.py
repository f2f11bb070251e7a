# ruff: noqa: RUF001, RUF003  letters of other scripts are what this module is about
"""Which encoding text has that is not Unicode: a guess by its letters, since no byte of it states one. Pure.

Two questions, one after the other. Do the bytes beyond ASCII follow each other, as in Cyrillic, Greek, Chinese, Japanese
and Korean text? Then the encoding is the one under which most are everyday characters of its script. Or are they single
letters within Latin words? Then it is the one under which they are letters of one language; where several fit alike,
Windows-1252. (charset-normalizer 3.5 was measured on tables of 2, 20 and 200 rows: with single letters and with few
words it mostly finds another encoding, since it judges running text.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

WESTERN = "cp1252"
_SAMPLE_BYTES = 2**16

_TYPICAL = {
    "cp1251": re.compile("[а-яё]"),
    "koi8_r": re.compile("[а-яё]"),
    "cp1253": re.compile("[α-ωά-ώ]"),
    "cp1255": re.compile("[א-ת]"),
    "cp949": re.compile("[가-힣]"),
    "gb18030": re.compile("[一-鿿]"),
    "euc_jp": re.compile("[ぁ-ヺー一-鿿]"),
    "cp932": re.compile("[ぁ-ヺー一-鿿]"),
    "big5": re.compile("[一-鿿]"),
}
"""By encoding of another script, the characters that most of its text consists of; of those that fit alike the first is taken."""
_COMMON = {
    "cp949": (*range(0xB0, 0xC9),),
    "gb18030": (*range(0xB0, 0xD8),),
    "euc_jp": (0xA4, 0xA5, *range(0xB0, 0xD0)),
    "cp932": (0x81, 0x82, 0x83, *range(0x88, 0x98)),
    "big5": (*range(0xA4, 0xC7),),
}
"""The first bytes of the characters of everyday text, which these encodings keep together."""
_STRICTER = {"cp949": "euc_kr"}
"""What includes an older encoding, which is named if the text is that."""
_CREDIBLE = 0.5

# Two bytes beyond ASCII, or one and what may follow it in Shift-JIS and Big5.
_PAIRS = re.compile(rb"(?:[\x81-\xfe][\x80-\xfe])+")
_LOOSE_PAIRS = re.compile(rb"(?:[\x81-\xfe][\x40-\x7e\x80-\xfe])+")
_SIDE_BY_SIDE = 1.5

_CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "âăîşţ")
_LANGUAGES = {
    "cp1252": (
        "äöüß", "àâæçèéêëîïôœùûüÿ", "áéíñóúüªº", "àáâãçéêíóôõú", "àèéìíòóù", "åäöæøéü", "áðéíóúýþæö", "àçèéíïòóúü", "éëïóöü",
    ),
    "iso8859_2": _CENTRAL,
    "cp1250": _CENTRAL,
    "cp1254": ("âçğıiîöşüû",),
}  # fmt: skip
"""By encoding, the letters beyond ASCII of each language that is written in it."""
_MARGIN = 0.1
_CONVINCING = 0.8
# Signs that stand beside words and numbers (5 °C, 10 m², ±1, Ø 8, “so” – …): letters only if they stand between letters.
_SIGNS = rb"\x80\x82\x84\x85\x89\x91-\x97\x99\xa0\xa7\xa9\xab\xae\xb0-\xb5\xb7\xbb-\xbe\xd7\xd8\xf7\xf8"
_LETTERS = re.compile(
    rb"(?<=[A-Za-z\xc0-\xff])[\x80-\xff](?=[A-Za-z\xc0-\xff])|[^\x00-\x7f%s]" % _SIGNS,
)


def guess_legacy(lines: Iterable[bytes]) -> str:
    """The codec of the lines, which hold bytes beyond ASCII and are not UTF-8."""
    sample = _beginning(lines)
    latin, fit = _latin(sample)
    if _pairs_in_a_row(_PAIRS, sample) >= _SIDE_BY_SIDE or (
        fit < _CONVINCING and _pairs_in_a_row(_LOOSE_PAIRS, sample) >= _SIDE_BY_SIDE
    ):
        return _other_script(sample) or latin
    return latin


def _beginning(lines: Iterable[bytes]) -> bytes:
    kept, size = [], 0
    for line in lines:
        kept.append(line)
        size += len(line)
        if size > _SAMPLE_BYTES:
            break
    return b"\n".join(kept)


def _pairs_in_a_row(pairs: re.Pattern[bytes], sample: bytes) -> float:
    runs = pairs.findall(sample)
    return sum(map(len, runs)) / 2 / len(runs) if runs else 0.0


def _other_script(sample: bytes) -> str | None:
    """The encoding under which the text has the largest share of typical characters; None: no half of it has any."""
    share, best = 0.0, ""
    for codec in _TYPICAL:
        if (found := _typical_share(sample, codec)) > share:
            share, best = found, codec
    if share < _CREDIBLE:
        return None
    stricter = _STRICTER.get(best)
    return stricter if stricter and _decodes(sample, stricter) else best


def _typical_share(sample: bytes, codec: str) -> float:
    text = [letter for letter in sample.decode(codec, "replace") if not letter.isascii()]
    typical = [letter for letter in text if _TYPICAL[codec].match(letter)]
    if common := _COMMON.get(codec):
        typical = [letter for letter in typical if letter.encode(codec, "replace")[0] in common]
    return len(typical) / max(len(text), 1)


def _latin(sample: bytes) -> tuple[str, float]:
    """The encoding under which the letters fit best, and which share of them does."""
    letters = b"".join(_LETTERS.findall(sample))
    if not letters:
        return WESTERN, 1.0
    best, best_fit = WESTERN, 0.0
    for codec, languages in _LANGUAGES.items():
        text = letters.decode(codec, "replace").lower()
        fit = max(sum(letter in language for letter in text) for language in languages) / len(text)
        margin = _MARGIN if best == WESTERN and best_fit else 0.0
        if fit > best_fit + margin and (codec == WESTERN or _decodes(sample, codec)):
            best, best_fit = codec, fit
    return best, best_fit


def _decodes(sample: bytes, codec: str) -> bool:
    try:
        sample.decode(codec)
    except UnicodeDecodeError:
        return False
    return True
