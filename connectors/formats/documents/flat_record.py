"""The flat record of a nested document: names joined by dots, values as text, lists as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from ingestd.sdk import SourceBroken

DocumentValue: TypeAlias = "str | Sequence[DocumentValue] | Mapping[str, DocumentValue] | None"

MOST_FIELDS = 100_000
"""The limit for the fields of a document, which aliases of aliases could exceed."""


def flatten(document: DocumentValue, name: str) -> dict[str, str | None]:
    """Return the record of a document. ``name`` names the file in errors.

    Raises:
        SourceBroken: the document is no mapping, is empty, or two of its joined names are equal.
    """
    record: dict[str, str | None] = {}
    if isinstance(document, Mapping):
        _add_fields(record, document, "", name)
    if not record:
        raise SourceBroken(f"{name} holds no names with values, so it has no record.")
    return record


def _add_fields(record: dict[str, str | None], part: Mapping[str, DocumentValue], prefix: str, name: str) -> None:
    for key, value in part.items():
        full = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _add_fields(record, value, f"{full}.", name)
            continue
        if full in record:
            raise SourceBroken(f"{name} has two values with the name {full!r} after nested names are joined by dots.")
        if len(record) >= MOST_FIELDS:
            raise SourceBroken(f"{name} has more than {MOST_FIELDS} values, the limit for a record.")
        record[full] = value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
