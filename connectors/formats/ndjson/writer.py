"""The NDJSON writer: flat objects, which read back with every field unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,14})?")
"""Numbers that every program keeps exactly. A longer number is safer as text."""


def encode_line(record: Mapping[str, str | None]) -> str:
    """Return the line of a record, with its line end.

    A text that looks like a number or boolean is written as a number or boolean. Both forms are read back as the same text.
    """
    return "{" + ", ".join(f"{_text(name)}: {_value(value)}" for name, value in record.items()) + "}\n"


def _value(value: str | None) -> str:
    if value is None:
        return "null"
    if value in {"true", "false"} or _NUMBER.fullmatch(value):
        return value
    return _text(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
