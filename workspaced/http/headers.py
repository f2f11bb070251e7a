"""A request's headers with fast look-up by name: each request asks for about ten, most of which are absent."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope


class RequestHeaders(Headers):
    """Starlette's headers with a dictionary. The first of several headers of one name counts."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        self._first: dict[bytes, bytes] = dict(reversed(self.raw))

    def get(self, key: str, default: Any = None, /) -> Any:
        """Return the header's value."""
        found = self._first.get(key.lower().encode("latin-1"))
        return default if found is None else found.decode("latin-1")
