# ruff: noqa: RUF001, RUF003  letters of other scripts are what this module is about
"""Legacy encodings: a guess by the letters, because no byte states the encoding. Performs no I/O.

In Cyrillic, Greek, Chinese, Japanese and Korean text, bytes beyond ASCII follow each other. In such text, the encoding with the
most everyday characters of its script is chosen. If bytes beyond ASCII are single letters within Latin words, the encoding with
the most letters of one language is chosen. If several encodings fit equally, Windows-1252 is chosen.

charset-normalizer 3.5 was measured on tables of 2, 20 and 200 rows. With single letters and few words it mostly finds a wrong
encoding, because it expects continuous text.
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
"""The most frequent characters of a script, by encoding. If several encodings fit equally, the first is used."""
_COMMON = {
    "cp949": (*range(0xB0, 0xC9),),
    "gb18030": (*range(0xB0, 0xD8),),
    "euc_jp": (0xA4, 0xA5, *range(0xB0, 0xD0)),
    "cp932": (0x81, 0x82, 0x83, *range(0x88, 0x98)),
    "big5": (*range(0xA4, 0xC7),),
}
"""The first bytes of everyday characters, which are close together in these encodings."""
_STRICTER = {"cp949": "euc_kr"}
"""By encoding: the older encoding that it includes. The older encoding is used if it can decode the text."""
_CREDIBLE = 0.5

# Two bytes beyond ASCII, or one such byte and a byte that may follow it in Shift-JIS and big5.
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
"""The letters beyond ASCII of each language, by encoding."""
_MARGIN = 0.1
_CONVINCING = 0.8
# Signs beside words and numbers (5 °C, 10 m², ±1, Ø 8, “so” – …) count as letters only between letters.
_SIGNS = rb"\x80\x82\x84\x85\x89\x91-\x97\x99\xa0\xa7\xa9\xab\xae\xb0-\xb5\xb7\xbb-\xbe\xd7\xd8\xf7\xf8"
_LETTERS = re.compile(rb"(?<=[A-Za-z\xc0-\xff])[\x80-\xff](?=[A-Za-z\xc0-\xff])|[^\x00-\x7f%s]" % _SIGNS)


def guess_legacy(lines: Iterable[bytes]) -> str:
    """Return the codec of lines that hold bytes beyond ASCII and are not UTF-8."""
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
    """Return the encoding with the largest share of typical characters; None if no share reaches one half."""
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
    """Return the encoding that the letters fit best, and the share of letters that fit."""
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
