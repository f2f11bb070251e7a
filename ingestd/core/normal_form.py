"""The Unicode form NFC, in which the service keeps keys and labels (G7 of its contract), so equal letters are one key."""

from __future__ import annotations

import unicodedata

import polars as pl


def nfc(text: str) -> str:
    """Return a text in NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_ascii(column: str) -> pl.Expr:
    """Return whether all texts of a column are ASCII, which is NFC. It costs a fiftieth of the normalization."""
    return pl.col(column).str.len_bytes().sum() == pl.col(column).str.len_chars().sum()


def nfc_texts(texts: pl.Series) -> pl.Series:
    """Return texts (``pl.String``) in NFC. Texts in ASCII cost a fiftieth of other texts."""
    if texts.str.len_bytes().sum() == texts.str.len_chars().sum():
        return texts
    return texts.str.normalize("NFC")
