"""The health checks (contract G23)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from workspaced.http.operations import Call, Operation
from workspaced.http.responses import Response, json_response
from workspaced.resources.operation_rows import read_operation


def operations(require_ready: Callable[[], Awaitable[None]]) -> tuple[Operation, ...]:
    """Return the rows of /healthz, which does not use the database, and of /readyz.

    ``require_ready`` raises UnavailableProblem until the service can serve requests, and again while it stops.
    """

    async def healthy(_call: Call) -> Response:
        return json_response({"status": "ok"})

    async def ready(_call: Call) -> Response:
        await require_ready()
        return json_response({"status": "ok"})

    return (
        read_operation("health.live", "/healthz", None, healthy),
        read_operation("health.ready", "/readyz", None, ready),
    )
