"""NDJSON as it is written back: flat objects whose reading gives every field as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,14})?")
"""What any program that the line passes through keeps as it is; a longer number is safer as text."""


def encode_line(record: Mapping[str, str | None]) -> str:
    """One line with its end. What reads as a number or truth value is written as one; its text is the same either way."""
    return "{" + ", ".join(f"{_text(name)}: {_value(value)}" for name, value in record.items()) + "}\n"


def _value(value: str | None) -> str:
    if value is None:
        return "null"
    if value in {"true", "false"} or _NUMBER.fullmatch(value):
        return value
    return _text(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
