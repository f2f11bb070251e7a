"""Rows of the service's entries, with the members that the mirror stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ingestd.client.bodies import UnreadableBody

Row = tuple[str, str | None, str | None]
"""Key, value and data type."""


SignedRow = tuple[str, str | None, str | None, str | None, str | None, str | None]
"""Key, value, data type, author, last author, and time of the last write. If one author created the entry and wrote it last, the
last author is None. Otherwise the author is None."""


def _text(value: object) -> str | None:
    # In the interface document, value and data type are strings. The JSON text of another type never equals a desired text.
    if isinstance(value, str):
        return _storable(value)
    return None if value is None else json.dumps(value)


def row_of(entry: Mapping[str, Any]) -> Row:
    """Return the members of an entry that the mirror stores.

    Raises:
        UnreadableBody: the entry has no key.
    """
    key = entry.get("key")
    if not isinstance(key, str):
        raise UnreadableBody("an entry has no key")
    return (_storable(key), _text(entry.get("value")), _text(entry.get("dataType")))


def signed_row_of(entry: Mapping[str, Any]) -> SignedRow:
    """Return `row_of` with the authors and the time of an entry; see `SignedRow`.

    The time is as the service writes it. Authors and time are None if the service does not state them.

    Raises:
        UnreadableBody: the entry has no key.
    """
    key, value, data_type = row_of(entry)
    found, at = entry.get("updatedBy"), entry.get("updatedAt")
    by = _storable(found) if isinstance(found, str) and found else None
    is_author = entry.get("createdBy") == found
    time = at if isinstance(at, str) and at.isascii() else None
    return (key, value, data_type, by if is_author else None, None if is_author else by, time)


def _storable(text: str) -> str:
    """Return the text with lone surrogates escaped, because UTF-8 can't encode them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
