from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ingestd.client import AsyncClient
from ingestd.client.records import Sink
from ingestd.process.postgres_address import PostgresAddress, postgres_address
from tests.support.postgres_databases import Databases
from workspaced.app import Application, running
from workspaced.security import key_store as access
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.address import Address, sqlite_address
from workspaced.storage.factory import migrate, transact

MakeKey = Callable[..., str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on SQLite, and with the mark `both_databases` also on PostgreSQL.

    Marked are tests of what depends on the SQL of a store or on its locks: statements with a variant for PostgreSQL, orders of
    lists, concurrent transactions, and each row of the interface. Together they execute nearly every statement on PostgreSQL.
    """
    if "postgres" in metafunc.fixturenames:
        is_marked = metafunc.definition.get_closest_marker("both_databases") is not None
        metafunc.parametrize("postgres", ("sqlite", "postgres") if is_marked else ("sqlite",), indirect=True)


@pytest.fixture
def database(postgres_databases: Databases) -> Iterator[PostgresAddress]:
    """A database of PostgreSQL with the newest schema."""
    with postgres_databases.migrated() as url:
        yield postgres_address(url)


@pytest.fixture
def postgres(request: pytest.FixtureRequest) -> PostgresAddress | None:
    """None for SQLite, else the address of a PostgreSQL database."""
    if request.param == "sqlite":
        return None
    address: PostgresAddress = request.getfixturevalue("database")
    return address


@pytest.fixture
def address(tmp_path: Path, postgres: PostgresAddress | None) -> Address:
    """The address of a database with the newest schema."""
    chosen = postgres or sqlite_address(tmp_path / "data")
    migrate(chosen)
    return chosen


@pytest.fixture
def settings(tmp_path: Path, postgres: PostgresAddress | None) -> WorkspacedSettings:
    """Settings without limits of rate, which a test may exceed within a second."""
    limits = Limits(requests_per_minute=0)
    return WorkspacedSettings(
        data=tmp_path / "data", limits=limits, key_cache_seconds=0, busy_seconds=1, readers=2, postgres=postgres
    )


@pytest.fixture
def make_key(settings: WorkspacedSettings) -> MakeKey:
    def make(name: str = "svc:test", role: str = "owner", workspace_id: str = "", expires_at: int | None = None) -> str:
        return transact(
            settings.database,
            lambda tx: access.create_key(
                tx,
                name=name,
                role=role,
                now=time.time_ns() // 1_000_000,
                expires_at=expires_at,
                workspace_id=workspace_id,
            ),
        )

    return make


@pytest.fixture
async def app(settings: WorkspacedSettings) -> AsyncIterator[Application]:
    async with running(settings) as started:
        yield started


@pytest.fixture
def transport(app: Application) -> httpx.ASGITransport:
    """The transport into a running service."""
    return httpx.ASGITransport(app=app, raise_app_exceptions=False)


@pytest.fixture
async def http(transport: httpx.ASGITransport, make_key: MakeKey) -> AsyncIterator[httpx.AsyncClient]:
    """A client with all permissions and a client id; for tests of bytes, headers and invalid input."""
    headers = {"x-api-key": make_key(), "ClientId": "tests"}
    async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as client:
        yield client


@pytest.fixture
async def client(transport: httpx.ASGITransport, make_key: MakeKey) -> AsyncIterator[AsyncClient]:
    """The same caller with the typed client; for tests of behaviour."""
    async with AsyncClient("http://service", api_key=make_key(), client_id="tests", transport=transport) as client:
        yield client


@pytest.fixture
async def workspace(http: httpx.AsyncClient) -> dict[str, Any]:
    response = await http.post("/v1/workspace", json={"label": "Rocket"})
    assert response.status_code == 201
    created: dict[str, Any] = response.json()
    return created


@pytest.fixture
def sinks(workspace: dict[str, Any]) -> str:
    """The path of the workspace's sinks."""
    return f"/v1/workspace/{workspace['id']}/data-sink"


@pytest.fixture
async def sink(http: httpx.AsyncClient, sinks: str) -> str:
    """The path of an empty sink."""
    response = await http.post(sinks, json={"label": "Mass budget"})
    assert response.status_code == 201
    return f"{sinks}/{response.json()['id']}"


@pytest.fixture
async def mass_budget(client: AsyncClient) -> Sink:
    """An empty sink in its own workspace."""
    workspace = await client.create_workspace("Rover")
    return await client.create_sink(workspace.id, label="Mass budget")
