"""Finds the templates and columns from which the key of an entry may be made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from ingestd.core.normal_form import nfc
from ingestd.core.template import COLUMN, Field, Literal, Template


def can_make(template: Template, text: str) -> bool:
    """Return whether a template can result in ``text``; a field has at least one character."""
    pattern = "".join(re.escape(nfc(part.text)) if isinstance(part, Literal) else "(?s:.+?)" for part in template.parts)
    return re.fullmatch(pattern, text) is not None


def columns_in(key: Template, text: str) -> Iterator[str]:
    """Yield the columns that the key ``text`` of an entry may name, if the template ``key`` made this text."""
    for column, other in product((".+?", ".+"), repeat=2):
        match = re.fullmatch(_key_pattern(key.parts, column, other), text, re.DOTALL)
        if match:
            yield match["column"]


def _key_pattern(parts: Iterable[Literal | Field], column: str, other: str) -> str:
    """Return a pattern for keys; its group ``column`` is the column's name. ``column``, ``other``: patterns for fields."""
    pattern = ""
    for part in parts:
        if isinstance(part, Literal):
            pattern += re.escape(nfc(part.text))
        elif part.name != COLUMN:
            pattern += f"(?:{other})"
        else:
            pattern += "(?P=column)" if "(?P<column>" in pattern else f"(?P<column>{column})"
    return pattern
