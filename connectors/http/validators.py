"""What asks a service whether a page is still the same: its ETag, or its time of change."""

from __future__ import annotations

import email.utils
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from connectors.http.exchange import PageResponse

Validator: TypeAlias = Mapping[str, str]
"""``target``, the address of a page without secrets, and ``etag`` or ``modified``."""

MOST = 100
"""More pages are not asked one by one: the cursor would become large."""

_APART_SECONDS = 60
"""A time of change counts in seconds. A later change within the same second would have the same time (RFC 9110, 8.8.2.2)."""


def validator_of(target: str, response: PageResponse) -> Validator | None:
    """Return how to ask for changes of a page; None if the service says nothing certain."""
    etag = response.headers.get("etag", "").strip()
    if etag:
        return {"target": target, "etag": etag}
    modified, now = (response.headers.get(name, "") for name in ("last-modified", "date"))
    then, at = (email.utils.parsedate_tz(text) for text in (modified, now))
    if then is None or at is None or email.utils.mktime_tz(at) - email.utils.mktime_tz(then) < _APART_SECONDS:
        return None
    return {"target": target, "modified": modified}


def conditions(validator: Validator) -> dict[str, str]:
    """Return the headers that request the page only if it changed."""
    if "etag" in validator:
        return {"if-none-match": validator["etag"]}
    return {"if-modified-since": validator["modified"]}


def storable(validators: Sequence[Validator | None]) -> list[Validator]:
    """Return the validators for a cursor: all of them, or none."""
    known = [validator for validator in validators if validator is not None]
    return known if len(known) == len(validators) <= MOST else []
