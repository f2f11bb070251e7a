"""Requests that the service makes to its own API for a signed-in user: the same operations and the same checks.

The pages have no other access to stored data, so they show a user only data that the user's key may read by the API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from ingestd.wire import names
from workspaced.core.asgi import Message, Receive, Scope
from workspaced.http.responses import Response
from workspaced.security.permissions import Principal

_STATE = "internal_caller"
_FORWARDED = frozenset({b"x-forwarded-for", b"x-forwarded-proto"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalCaller:
    """The caller of an internal request. ``counted``: the request uses a token of its rate limit (contract G20)."""

    principal: Principal
    counted: bool = True


def internal_caller_of(scope: Scope) -> InternalCaller | None:
    """Return the caller of an internal request; None for a request from the network, which can't set the scope's state."""
    found = scope["state"].get(_STATE)
    return found if isinstance(found, InternalCaller) else None


class InternalClient:
    """The client of the API for one request to a page. It passes on the client's address and the request id of the page."""

    def __init__(
        self, respond: Callable[[Scope, Receive], Awaitable[Response]], outer: Scope, principal: Principal
    ) -> None:
        """``respond`` is `workspaced.http.dispatch.Dispatch.respond`; ``outer`` is the scope of the page's request."""
        self.principal = principal
        self._respond = respond
        self._outer = outer

    def for_principal(self, principal: Principal) -> InternalClient:
        """Return the same client for another principal."""
        return InternalClient(self._respond, self._outer, principal)

    async def request(
        self,
        method: str,
        *segments: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        counted: bool = True,
        body: Receive | None = None,
    ) -> Response:
        """Return the response of the operation at ``/v1/<segments>``. Segments are encoded here. ``body`` None: no body."""
        path = "/v1/" + "/".join(quote(segment, safe="") for segment in segments)
        forwarded = [(name, value) for name, value in self._outer["headers"] if name in _FORWARDED]
        state = {
            "request_id": self._outer["state"]["request_id"],
            _STATE: InternalCaller(principal=self.principal, counted=counted),
        }
        scope: Scope = {
            **self._outer,
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query or {}).encode(),
            "headers": forwarded
            + [
                (name.lower().encode(), value.encode())
                for name, value in {"Accept": names.PROBLEM_JSON, **(headers or {})}.items()
            ],
            "state": state,
        }
        return await self._respond(scope, body or EMPTY_BODY)


def whole_body(body: bytes) -> Receive:
    """Return a body as an application receives it, in one message."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


EMPTY_BODY: Final[Receive] = whole_body(b"")
