"""The service in this process, with a given number of entries, audit rows and deliveries."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx

from tests.support.sample_workspace import SampleWorkspace
from workspaced.app import Application, running
from workspaced.security import key_store as access
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

SINK: Final = "/v1/workspace/{workspace}/data-sink/{sink}"
_BULK: Final = 1_500


def growing_settings(data: Path, **limits: int) -> WorkspacedSettings:
    """Return settings with small limits, no rate limit, and maintenance jobs that run only when a test calls them."""
    chosen = Limits(requests_per_minute=0, walked_rows=500, **limits)
    return WorkspacedSettings(data=data, limits=chosen, maintenance_seconds=86_400, key_cache_seconds=3_600)


@asynccontextmanager
async def growing_service(data: Path) -> AsyncIterator[tuple[Application, httpx.AsyncClient]]:
    """Yield a service in this process, and a client with the key of an owner."""
    settings = growing_settings(data)
    key = transact(
        settings.database,
        lambda tx: access.create_key(
            tx, name="svc:test", role="owner", now=time.time_ns() // 1_000_000, expires_at=None
        ),
    )
    async with running(settings) as app:
        transport = httpx.ASGITransport(app=app)
        headers = {"x-api-key": key, "ClientId": "tests"}
        async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as http:
            await app.run_maintenance()  # so that the first run of the jobs is not counted
            yield app, http


async def fill(http: httpx.AsyncClient, settings: WorkspacedSettings, sample: SampleWorkspace, rows: int) -> None:
    """Create ``rows`` entries, audit rows and attempted deliveries. All are new, because jobs delete old rows."""
    now = time.time_ns() // 1_000_000
    sink = SINK.format(workspace=sample.workspace, sink=sample.sink)
    for start in range(0, rows, _BULK):
        entries = [{"key": f"k{index:06d}", "value": "1"} for index in range(start, min(start + _BULK, rows))]
        response = await http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
        assert response.status_code == 200, response.text
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
    for statement in (
        f"""INSERT INTO audit_row (at, principal, key_id, client_id, request_id, address, action, resource_id,
                                   resource_label, workspace_id, changed, counts)
            {numbers} SELECT {now} + i, 'p', '', '', '', '', 'data_sink.updated', '', '', '', '[]', '{{}}' FROM n""",
        f"""INSERT INTO event (number, id, type, workspace_id, sequence, body, created_at)
            {numbers} SELECT i + 1000000, 'e' || i, 'data_sink.updated', '', i, '{{}}', {now} + i FROM n""",
        f"""INSERT INTO delivery (number, id, webhook, event, resource, status, due_at, created_at)
            {numbers} SELECT i + 1000000, printf('%08x-0000-4000-8000-000000000000', i), w.number, i + 1000000, 'r',
                             'succeeded', 0, {now} + i FROM n, webhook w""",
    ):
        transact(settings.database, lambda tx, statement=statement: tx.run(statement))  # type: ignore[misc]
