"""Several ASGI applications side by side, chosen by the first segment of the path."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from workspaced.http.paths import raw_path_of


class MountedApps:
    """ASGI application that passes each request on unchanged.

    Starlette's ``Mount`` is not used: it changes the path, and matches it decoded.
    """

    def __init__(self, default: ASGIApp, mounted: Mapping[bytes, ASGIApp]) -> None:
        """``mounted`` maps a first segment, as sent, to its application; ``default`` receives all other requests."""
        self._default = default
        self._mounted = mounted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one HTTP request on."""
        app = self._mounted.get(raw_path_of(scope).removeprefix(b"/").partition(b"/")[0], self._default)
        await app(scope, receive, send)
