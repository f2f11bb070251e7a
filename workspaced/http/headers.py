"""A request's headers, found by name at once: some ten are asked for in every request, and most are not there."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope


class RequestHeaders(Headers):
    """As Starlette's, which looks through all of them each time. The first of several of one name counts."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        self._first: dict[bytes, bytes] = dict(reversed(self.raw))

    def get(self, key: str, default: Any = None, /) -> Any:
        """The header's value."""
        found = self._first.get(key.lower().encode("latin-1"))
        return default if found is None else found.decode("latin-1")
