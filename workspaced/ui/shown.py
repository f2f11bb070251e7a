"""The digest of what a page shows of a record, by which a later change finds out whether the record is still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from workspaced.core.json_body import encode


def shown_digest(values: Mapping[str, Any]) -> str:
    """Return a digest of the values. Equal values have equal digests, so a value that was changed and restored is no conflict."""
    return hashlib.sha256(encode(sorted(values.items()))).hexdigest()[:32]


def entry_values(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what users change of an entry."""
    return {"value": entry["value"], "dataType": entry["dataType"]}


def entry_digest(entry: Mapping[str, Any]) -> str:
    """Return the digest of an entry's record."""
    return shown_digest(entry_values(entry))
