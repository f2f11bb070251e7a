"""The rows that PostgreSQL reads for an operation, over a sink that grows from N entries to 4N."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
import pytest

from ingestd.process.postgres_address import postgres_address
from tests.support.postgres_databases import Databases, databases
from workspaced.app import running
from workspaced.security import key_store as access
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

N: Final = 2_000
_REPEATED: Final = 3
_READ = """
SELECT (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables)
     + (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes)
"""
_REQUESTS: Final[Mapping[str, tuple[str, str, Any]]] = {
    "nothing": ("GET", "/healthz", None),
    "page": ("GET", "{sink}?take=50", None),
    "page backwards": ("GET", "{sink}?take=50&sortOrder=DESC", None),
    "page by key": ("GET", "{sink}?take=50&sortedBy=key", None),
    "page by key backwards": ("GET", "{sink}?take=50&sortedBy=key&sortOrder=DESC", None),
    "search that finds nothing": ("GET", "{sink}?take=50&search=nothing", None),
    "search of values that finds nothing": ("GET", "{sink}?take=50&search=nothing&searchIn=all&sortedBy=key", None),
    "search by key that finds nothing": ("GET", "{sink}?take=50&search=nothing&sortedBy=key", None),
    "audit log of an action": ("GET", "/v1/audit-log?take=10&action=api_key.*", None),
    "entry": ("GET", "{sink}/k000007", None),
    "upsert": ("POST", "{sink}/mass", {"key": "k000007", "value": "2"}),
    "bulk": ("POST", "{sink}/mass", [{"key": f"k{index * 7:06d}", "value": "2"} for index in range(50)]),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Databases]:
    with databases() as made:
        yield made


async def _repeated(settings: WorkspacedSettings, key: str, name: str, sink: str) -> None:
    method, path, body = _REQUESTS[name]
    headers = {"x-api-key": key, "ClientId": "tests", "Prefer": "return=minimal"}
    async with (
        running(settings) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service", headers=headers) as http,
    ):
        await app.run_maintenance()
        for _ in range(_REPEATED):
            response = await http.request(method, path.format(sink=sink), json=body)
            assert response.is_success, response.text


async def _filled(settings: WorkspacedSettings, key: str, rows: int) -> str:
    headers = {"x-api-key": key, "ClientId": "tests", "Prefer": "return=minimal"}
    async with (
        running(settings) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://service", headers=headers) as http,
    ):
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        # Two equal sinks, so that a walk of the entries of all sinks reaches those of the second one late.
        sinks = [
            (await http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"})).headers["Location"]
            for _ in range(2)
        ]
        for sink in sinks:
            for start in range(0, rows, N):
                entries = [{"key": f"k{index:06d}", "value": "1"} for index in range(start, start + N)]
                assert (await http.post(f"{sink}/mass", json=entries)).status_code == 200
    return str(sinks[1])


def _rows_read(servers: Databases, data: Path, rows: int) -> dict[str, int]:
    """Return the rows read for some requests of each kind, without those of any start and stop of the service."""
    read: dict[str, int] = {}
    with servers.migrated() as url, psycopg.connect(url, autocommit=True) as watching:
        limits = Limits(requests_per_minute=0, walked_rows=500)
        settings = WorkspacedSettings(data=data, limits=limits, postgres=postgres_address(url), key_cache_seconds=3_600)
        settings = dataclasses.replace(settings, maintenance_seconds=86_400)
        now = time.time_ns() // 1_000_000
        key = transact(
            settings.database,
            lambda tx: access.create_key(tx, name="svc:test", role="owner", now=now, expires_at=None),
        )
        sink = asyncio.run(_filled(settings, key, rows))
        watching.execute("VACUUM ANALYZE")
        for name in _REQUESTS:
            before = _count(watching)
            asyncio.run(_repeated(settings, key, name, sink))
            read[name] = _count(watching) - before
    return {name: count - read["nothing"] for name, count in read.items()}


def _count(watching: psycopg.Connection[Any]) -> int:
    """Return the count when every other session has ended, because each reports its numbers then."""
    deadline = time.monotonic() + 30
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    others += " AND backend_type = 'client backend'"
    while watching.execute(others).fetchone() != (0,):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    row = watching.execute(_READ).fetchone()
    assert row
    return int(row[0])


@pytest.fixture(scope="module")
def read(servers: Databases, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[int, int]]:
    small, large = (_rows_read(servers, tmp_path_factory.mktemp("growth") / "data", rows) for rows in (N, 4 * N))
    return {name: (small[name], large[name]) for name in small}


@pytest.mark.parametrize("name", [name for name in _REQUESTS if name != "nothing"])
def test_the_number_of_rows_read_does_not_grow_with_the_sink(read: Mapping[str, tuple[int, int]], name: str) -> None:
    small, large = read[name]
    assert large <= 1.25 * small + N / 10, (small, large)
