"""Nothing secret leaves through a log: what is masked, by the name of a field and by the look of a text."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "***"

_SECRET_FIELD = re.compile(
    r"(?:^|[._-])(?:x[_-])?(?:api[_-]?key|password|passwd|pwd|secret|token|authorization|credentials?)$", re.IGNORECASE
)

# Each pattern keeps its first group and masks the rest. A port is no password, so `http://host:8400/a@b` stays itself.
_SECRET_TEXTS = (
    re.compile(r"(\b(?:edw|whsec)_)[A-Za-z0-9_+/=-]+"),
    re.compile(r"(://)(?:[^:/\s@]*:(?!\d+[/?#])\S*|[^:/?#\s@]+)(?=@)"),
    re.compile(r"((?i:\b(?:api[_-]?key|password|passwd|pwd|secret|token)\s*[=:]\s*))(?!\*\*\*)[^\s&;,'\"]+"),
    re.compile(r"((?i:\b(?:bearer|basic)\s))[A-Za-z0-9._~+/=-]{8,}"),
)


def redact_text(text: str) -> str:
    """``text`` without API keys, webhook secrets, the user part of URLs and ``password=…`` pairs."""
    for pattern in _SECRET_TEXTS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


def redact(value: object, name: str = "") -> object:
    """``value`` as it may be logged under ``name``: numbers as they are, all else as text or containers of text."""
    if value is None or isinstance(value, bool | int | float):
        return MASK if _SECRET_FIELD.search(name) and value is not None else value
    if isinstance(value, Mapping):
        return {str(key): redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, name) for item in value]
    if _SECRET_FIELD.search(name):
        return MASK
    return redact_text(repr(value) if isinstance(value, BaseException) else str(value))
