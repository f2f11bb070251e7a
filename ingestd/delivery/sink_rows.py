"""Rows of the service's entries, with the members that the mirror stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ingestd.client.bodies import UnreadableBody

Row = tuple[str, str | None, str | None]
"""Key, value and data type."""


SignedRow = tuple[str, str | None, str | None, str | None]
"""Key, value, data type, and the author if one author created the entry and wrote it last."""


def _text(value: object) -> str | None:
    # The interface document types both as strings. JSON of another type never equals a desired text.
    if isinstance(value, str):
        return _storable(value)
    return None if value is None else json.dumps(value)


def row_of(entry: Mapping[str, Any]) -> Row:
    """Return the members of an entry that the mirror stores.

    Raises:
        UnreadableBody: it has no key.
    """
    key = entry.get("key")
    if not isinstance(key, str):
        raise UnreadableBody("an entry has no key")
    return (_storable(key), _text(entry.get("value")), _text(entry.get("dataType")))


def signed_row_of(entry: Mapping[str, Any]) -> SignedRow:
    """Return `row_of` with the author: None if two authors wrote the entry, or if the service names no author.

    Raises:
        UnreadableBody: it has no key.
    """
    key, value, data_type = row_of(entry)
    author = entry.get("updatedBy")
    one = isinstance(author, str) and bool(author) and entry.get("createdBy") == author
    return (key, value, data_type, _storable(author) if isinstance(author, str) and one else None)


def _storable(text: str) -> str:
    """Return the text with each half of a surrogate pair escaped, because UTF-8 can't encode it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
