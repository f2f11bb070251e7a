"""For those who run the service: is the process up, and can it serve (contract, G23)."""

from __future__ import annotations

from collections.abc import Callable

from workspaced.problems import Unavailable
from workspaced.web.answers import Answer, json_answer
from workspaced.web.operations import Call, Operation


def operations(is_draining: Callable[[], bool]) -> tuple[Operation, ...]:
    """/healthz asks nothing of the database; /readyz is 503 until it works, and again once the service is stopping."""

    async def healthy(_call: Call) -> Answer:
        return json_answer({"status": "ok"})

    async def ready(call: Call) -> Answer:
        if is_draining():
            raise Unavailable("stopping", "The service is stopping.")
        await call.store.check()
        return json_answer({"status": "ok"})

    return (
        Operation(name="health.live", method="GET", path="/healthz", scope=None, read=healthy),
        Operation(name="health.ready", method="GET", path="/readyz", scope=None, read=ready),
    )
