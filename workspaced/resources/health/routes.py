"""The health checks (contract G23)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from workspaced.core.json_schema import choice, response
from workspaced.http.description import Success
from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, json_response
from workspaced.resources.operation_rows import get


def operations(require_ready: Callable[[], Awaitable[None]]) -> tuple[Operation, ...]:
    """Return the operations of /healthz, which does not use the database, and of /readyz.

    ``require_ready`` raises UnavailableProblem until the service can serve requests, and again while it stops.
    """

    async def healthy(_call: Call) -> Response:
        """Is the process up.

        Whether the process responds. Does not use the database.
        200: It responds.
        """
        return json_response({"status": "ok"})

    async def ready(_call: Call) -> Response:
        """Can the service serve.

        Whether the service can serve requests. Reads and writes the database.
        200: It can.
        503: `stopping`, `schema_behind`, `schema_ahead`, or the database can't be reached.
        """
        await require_ready()
        return json_response({"status": "ok"})

    success = Success(response({"status": choice("ok")}))
    return (
        get("health.live", "/healthz", None, healthy).described(success=success),
        get("health.ready", "/readyz", None, ready).described(success=success),
    )
