from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from ingestd.client import AsyncClient, Client
from ingestd.client.records import Sink, Workspace
from tests.support.client_calls import AnyClient, done
from tests.support.recorded_workspaced import RecordedWorkspaced
from workspaced.security.egress.rules import EgressRules


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedWorkspaced]:
    """Run one real service for all tests of the client; each test creates its own workspace."""
    egress = EgressRules.from_environment({}, dev=True)
    with RecordedWorkspaced(tmp_path_factory.mktemp("client") / "data", egress=egress) as running:
        yield running


@pytest.fixture(params=["blocking", "asynchronous"])
async def client(service: RecordedWorkspaced, request: pytest.FixtureRequest) -> AsyncIterator[AnyClient]:
    if request.param == "blocking":
        with Client(service.url, api_key=service.api_key, client_id="bench-3") as blocking:
            yield blocking
    else:
        async with AsyncClient(service.url, api_key=service.api_key, client_id="bench-3") as asynchronous:
            yield asynchronous


@pytest.fixture
async def workspace(client: AnyClient) -> Workspace:
    return await done(client.create_workspace("Rover"))


@pytest.fixture
async def sink(client: AnyClient, workspace: Workspace) -> Sink:
    return await done(client.create_sink(workspace.id, label="Mass budget"))
