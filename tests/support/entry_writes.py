"""The entries that a request writes, by the rules of the interface document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import unquote, urlsplit

import msgspec


class Written(Protocol):
    """A request that one of the test servers recorded."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def body(self) -> bytes: ...


def written_keys(request: Written) -> list[str]:
    """Return the keys that a request creates, updates or deletes; empty if it writes no entry."""
    segments = [unquote(segment) for segment in urlsplit(request.path).path.split("/")]
    if segments[:3] != ["", "v1", "workspace"] or segments[4:5] != ["data-sink"]:
        return []
    match request.method, segments[5:]:
        case "POST", []:
            return [entry["key"] for entry in msgspec.json.decode(request.body).get("entries") or ()]
        case "POST", [_] | [_, "mass"]:
            body = msgspec.json.decode(request.body)
            items = body.get("entries", [body]) if isinstance(body, dict) else body
            return [item["key"] for item in items]
        case "PATCH" | "DELETE", [_, key]:
            return [key]
    return []


def writes_by_key(requests: Iterable[Written]) -> Counter[str]:
    """Return how often each key was written."""
    return Counter(key for request in requests for key in written_keys(request))
