"""Validators of the texts in an entry mapping: templates and data types."""

from __future__ import annotations

import re

from ingestd.core.mapping import TemplateError, parse_template
from ingestd.settings.validation import problem

_DATA_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def template(text: str) -> str:
    """Return ``text``, which must be a template."""
    try:
        parse_template(text)
    except TemplateError as error:
        sentence = str(error)
        raise problem(f"{sentence[:1].upper()}{sentence[1:]}.", error.position) from None
    return text


def data_type(text: str) -> str:
    """Return ``text``, which must be a data type or a template of a data type."""
    if not parse_template(template(text)).fields and not _DATA_TYPE.fullmatch(text):
        raise problem(
            "Expected a data type such as scalar, text or datetime: a letter, then at most 63 letters, digits, '_', '.' or '-'."
        )
    return text


def without_nul(text: str) -> str:
    """Return ``text``, which must not have the character U+0000: no entry can contain it."""
    if "\0" in text:
        raise problem("The character U+0000 is not permitted.", text.index("\0"))
    return text
