"""Several ASGI applications in one, selected by the first segment of the path."""

from __future__ import annotations

from collections.abc import Mapping

from workspaced.core.asgi import ASGIApp, Receive, Scope, Send
from workspaced.http.paths import raw_path_of


class MountedApps:
    """ASGI application that forwards each request unchanged."""

    def __init__(self, default: ASGIApp, mounted: Mapping[bytes, ASGIApp]) -> None:
        """``mounted`` maps a first segment, as sent, to its application; ``default`` receives all other requests."""
        self._default = default
        self._mounted = mounted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        app = self._mounted.get(raw_path_of(scope).removeprefix(b"/").partition(b"/")[0], self._default)
        await app(scope, receive, send)
