"""Masks secrets in logs and messages: known values, the values of fields with secret names, and texts of known form.

A known value is a secret of a configuration (`mask_secrets`). A text is not masked because of the words before it:
``service.api_key: The variable X is not set`` contains no secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

MASK = "***"

_SECRET_FIELD = re.compile(
    r"(?:^|[._-])(?:x[_-])?(?:api[_-]?key|password|passwd|pwd|secret|token|authorization|credentials?)$", re.IGNORECASE
)

# Each pattern keeps its first group and masks the rest.
_SECRET_TEXTS = (
    re.compile(r"(\b(?:edw|whsec)_)[A-Za-z0-9_+/=-]+"),
    re.compile(r"((?i:\b(?:bearer|basic)\s))[A-Za-z0-9._~+/=-]{8,}"),
)
_WORD = re.compile(r"\S+")
# The user of a URL, or the user and the colon before a password. A port is no password, so `http://host:8400/a@b` has none.
_URL_USER = re.compile(r"://(?:(?P<password>[^:/\s@]*+:(?!\d++[/?#]))|[^:/?#\s@]++(?=@))")


_SHORTEST_SECRET = 4
"""A known secret with fewer characters is not masked, because it may be an ordinary word. API keys are longer."""

_known: set[str] = set()
_known_pattern: re.Pattern[str] | None = None


def mask_secrets(secrets: Iterable[str]) -> None:
    """Mask these texts in every later log line and message. If a text is a URL, only its password is masked."""
    global _known_pattern  # noqa: PLW0603 - the known secrets apply to the whole process
    for secret in secrets:
        password = _password(secret)
        # The address in a URL is no secret. `redact_text` masks the user part of every URL.
        texts = (password, unquote(password)) if password is not None else () if "://" in secret else (secret,)
        _known.update(text for text in texts if len(text) >= _SHORTEST_SECRET)
    if _known:
        longest_first = sorted(_known, key=len, reverse=True)
        _known_pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


def _password(text: str) -> str | None:
    try:
        return urlsplit(text).password
    except ValueError:
        return None


def redact_text(text: str) -> str:
    """Return ``text`` without known secrets, API keys, webhook secrets and the user part of URLs."""
    if _known_pattern is not None:
        text = _known_pattern.sub(MASK, text)
    for pattern in _SECRET_TEXTS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return _WORD.sub(_mask_url_users, text) if "://" in text and "@" in text else text


def _mask_url_users(word: re.Match[str]) -> str:
    """Mask the user part of each URL in a text without whitespace. A password may contain ``@``, so the last ``@`` ends it."""
    text = word[0]
    last = text.rfind("@")
    parts, end = [], 0
    for user in _URL_USER.finditer(text, 0, last + 1):
        parts += [text[end : user.start()], "://", MASK]
        end = user.end()
        if user["password"] is not None:
            end = last
            break
    return "".join((*parts, text[end:]))


def redact(value: object, name: str = "") -> object:
    """Return ``value`` as it may be logged under ``name``: numbers unchanged, other values as text or containers of text."""
    if value is None or isinstance(value, bool | int | float):
        return MASK if _SECRET_FIELD.search(name) and value is not None else value
    if isinstance(value, Mapping):
        return {str(key): redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, name) for item in value]
    if _SECRET_FIELD.search(name):
        return MASK
    return redact_text(repr(value) if isinstance(value, BaseException) else str(value))
