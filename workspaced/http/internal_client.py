"""Questions that the service asks itself for somebody who has shown who he is: the same operations, the same checks.

The pages know no other way to what is stored, so what a key may not read by the API, it can't see there either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from starlette.types import Message, Receive, Scope

from ingestd.wire import names
from workspaced.http.responses import Response
from workspaced.security.permissions import Principal

_STATE = "inside"
_PASSED_ON = frozenset({b"x-forwarded-for", b"x-forwarded-proto"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalCaller:
    """Who asks. ``counted``: the question takes a token of his rate, as one that he sends does (contract G20)."""

    principal: Principal
    counted: bool = True


def internal_caller_of(scope: Scope) -> InternalCaller | None:
    """Who asks from inside; None for a request from the network, whose sender has no hand in the scope's state."""
    found = scope["state"].get(_STATE)
    return found if isinstance(found, InternalCaller) else None


class InternalClient:
    """The API for one request to a page: from the address, and under the request id, of that request."""

    def __init__(
        self, answer: Callable[[Scope, Receive], Awaitable[Response]], outer: Scope, principal: Principal
    ) -> None:
        """``answer`` is `workspaced.http.dispatch.Dispatch.answer`; ``outer`` the scope of the page's request."""
        self.principal = principal
        self._answer = answer
        self._outer = outer

    def of(self, principal: Principal) -> InternalClient:
        """The same for who he is by now."""
        return InternalClient(self._answer, self._outer, principal)

    async def ask(
        self,
        method: str,
        *segments: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        counted: bool = True,
    ) -> Response:
        """The answer of the operation under ``/v1/<segments>``, which are encoded here; no body is sent."""
        path = "/v1/" + "/".join(quote(segment, safe="") for segment in segments)
        passed = [(name, value) for name, value in self._outer["headers"] if name in _PASSED_ON]
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
            "headers": passed
            + [
                (name.lower().encode(), value.encode())
                for name, value in {"Accept": names.PROBLEM_JSON, **(headers or {})}.items()
            ],
            "state": state,
        }
        return await self._answer(scope, _nothing)


async def _nothing() -> Message:
    """The body of a question: none."""
    return {"type": "http.request", "body": b"", "more_body": False}
