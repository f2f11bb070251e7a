"""Strict decoding and encoding of JSON bodies. Numbers keep their digits (contract G6, G7, G10)."""

from __future__ import annotations

import math
from decimal import Decimal

import msgspec

from workspaced.core.problems import Invalid, UnsupportedMediaTypeProblem

_BOM = b"\xef\xbb\xbf"


def _exact(text: str) -> Decimal:
    """Keep the digits of a number (1.10 stays 1.10). Reject a number that is infinite in floating point."""
    if math.isinf(float(text)):
        raise ValueError("a number is out of range")
    return Decimal(text)


_DECODER = msgspec.json.Decoder(float_hook=_exact)
_ENCODER = msgspec.json.Encoder(decimal_format="number")
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError)


def encode(value: object) -> bytes:
    """Return a value as JSON in UTF-8."""
    return _ENCODER.encode(value)


def without_bom(body: bytes) -> bytes:
    """Return the body without a byte order mark at its start."""
    return body.removeprefix(_BOM)


def decode(body: bytes) -> object:
    """Return the value of a body; numbers keep their digits.

    Raises:
        Invalid: the body is empty, not JSON or UTF-8, too deeply nested, or has a lone surrogate, U+0000 or too large a number.
    """
    text = without_bom(body)
    if not text:
        raise Invalid("body_required", "The request needs a JSON body.")
    try:
        value: object = _DECODER.decode(text)
        has_nul = b"\\u0000" in text and _has_nul(value)
    except MALFORMED as error:
        raise Invalid("malformed_json", f"The body is not valid JSON ({error}).") from error
    if has_nul:  # PostgreSQL can't store it
        raise Invalid("nul_character", "The body may not have the character U+0000.")
    return value


def _has_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(name) or _has_nul(item) for name, item in value.items())
    return isinstance(value, list) and any(_has_nul(item) for item in value)


def is_deeper(value: object, levels: int) -> bool:
    """Return whether objects and lists are nested deeper than ``levels``. Encoding recurses, so deep values are not stored."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels < 1 or any(is_deeper(item, levels - 1) for item in inner)


def require_json(content_type: str | None, body: bytes) -> None:
    """Reject a body with a media type other than JSON. A body without a media type is read as JSON.

    Raises:
        UnsupportedMediaTypeProblem: the media type is not JSON, or the charset is not UTF-8.
    """
    if not content_type or not body or content_type == "application/json":
        return
    media, _, parameters = content_type.partition(";")
    media = media.strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise UnsupportedMediaTypeProblem
    for parameter in parameters.lower().split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in {"utf-8", "utf8", "us-ascii"}:
            raise UnsupportedMediaTypeProblem
