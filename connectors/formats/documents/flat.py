"""A nested document as one flat record: names joined by dots, values as text, lists as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from ingestd.sdk import SourceBroken

Value: TypeAlias = "str | Sequence[Value] | Mapping[str, Value] | None"

MOST_FIELDS = 100_000
"""A document that unfolds into more (an alias of aliases, say) is refused."""


def flat(document: Value, name: str) -> dict[str, str | None]:
    """The record; ``name`` is the file's, for the sentence of an error.

    Raises:
        SourceBroken: the document is no mapping, is empty, or two of its names are one once joined.
    """
    if not isinstance(document, Mapping) or not document:
        raise SourceBroken(f"{name} holds no names with values, so it is no record.")
    record: dict[str, str | None] = {}
    _fill(record, document, "", name)
    return record


def _fill(record: dict[str, str | None], part: Mapping[str, Value], prefix: str, name: str) -> None:
    for key, value in part.items():
        full = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _fill(record, value, f"{full}.", name)
            continue
        if full in record:
            raise SourceBroken(f"{name} has two values that are both called {full!r} once names are joined.")
        if len(record) >= MOST_FIELDS:
            raise SourceBroken(f"{name} has more than {MOST_FIELDS} values, more than one record may have.")
        record[full] = value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
