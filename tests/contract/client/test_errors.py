"""Each error of the client, with the response of a real service or of a server that is not one."""

from __future__ import annotations

import pickle
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ingestd.client import AsyncClient, Client, Timeouts
from ingestd.client.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unreachable,
    value_of,
)
from ingestd.client.operations import extension
from ingestd.client.records import NewEntry, Sink, Workspace
from ingestd.core.outcome import Fault
from tests.support.client_calls import AnyClient, done
from tests.support.recorded_workspaced import RecordedWorkspaced
from workspaced.settings.model import Limits


async def test_an_error_has_the_message_of_the_service(client: AnyClient, workspace: Workspace) -> None:
    with pytest.raises(BadRequest) as caught:
        await done(client.create_sink(workspace.id, label=" ", entries=[NewEntry(key="", data_type="t")]))
    error = caught.value
    assert (error.operation, error.status, error.code) == ("data_sinks.create", 400, error.errors[0].code)
    assert {mistake.pointer for mistake in error.errors} == {"/label", "/entries/0/key"}
    assert error.request_id
    assert str(error).startswith(
        "data_sinks.create: The service does not accept the content of the request (400). The service says: "
    )
    assert str(error).endswith(f"[request {error.request_id}]")


async def test_an_error_can_be_pickled(client: AnyClient, workspace: Workspace) -> None:
    with pytest.raises(NotFound) as caught:
        await done(client.get_sink(workspace.id, "SNK-9"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.code) == (NotFound, str(caught.value), caught.value.code)


async def test_each_error_status_raises_its_exception_class(
    client: AnyClient, service: RecordedWorkspaced, workspace: Workspace, sink: Sink
) -> None:
    with pytest.raises(NotFound) as absent:
        await done(client.get_workspace(str(uuid.uuid4())))
    with pytest.raises(Conflict) as used:
        await done(client.create_workspace("x", id=workspace.id))
    assert (absent.value.status, absent.value.code) == (404, "workspace_not_found")
    assert (used.value.status, used.value.code) == (409, "id_in_use")
    with Client(service.url, api_key="edw_wrong") as unknown, pytest.raises(Unauthenticated):
        unknown.list_workspaces()
    with Client(service.url) as anonymous, pytest.raises(Unauthenticated):
        anonymous.get_workspace(workspace.id)
    body = msgspec.json.encode({"name": str(uuid.uuid4()), "role": "reader", "workspaceId": workspace.id})
    issued = value_of(await done(client.send(extension("POST", "/v1/api-keys", body=body))))
    async with AsyncClient(service.url, api_key=issued["key"]) as reader:
        with pytest.raises(Forbidden):
            await reader.delete_sink(workspace.id, sink.id)


async def test_too_many_requests_has_the_time_to_wait(tmp_path: Path) -> None:
    limits = Limits(requests_per_minute=1, request_burst=1)
    with RecordedWorkspaced(tmp_path / "data", limits=limits) as slow:
        with Client(slow.url, api_key=slow.api_key) as client:
            client.list_workspaces()
            with pytest.raises(RateLimited) as blocking:
                client.list_workspaces()
        async with AsyncClient(slow.url, api_key=slow.api_key) as awaiting:
            with pytest.raises(RateLimited) as asynchronous:
                await awaiting.list_workspaces()
    for caught in (blocking, asynchronous):
        assert caught.value.retry_after is not None
        assert 0 < caught.value.retry_after <= 60


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


async def test_an_unreachable_service_raises_an_error_that_excludes_an_effect() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with Client(url, api_key="edw_hidden") as client, pytest.raises(Unreachable) as blocking:
        client.list_workspaces()
    async with AsyncClient(url, api_key="edw_hidden") as awaiting:
        with pytest.raises(Unreachable) as asynchronous:
            await awaiting.list_workspaces()
    for caught in (blocking, asynchronous):
        assert (caught.value.fault, caught.value.may_have_happened, caught.value.status) == (Fault.REFUSED, False, None)
        assert str(caught.value) == "workspaces.list: Nothing listens at the service's address."
        assert caught.value.__cause__ is None
        assert "hidden" not in repr(caught.value)


async def test_a_request_without_a_response_may_have_been_applied(silent: socket.socket) -> None:
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    impatient = Timeouts(read_seconds=0.05)
    with Client(url, timeouts=impatient) as client, pytest.raises(Unreachable) as blocking:
        client.create_workspace("x")
    async with AsyncClient(url, timeouts=impatient) as awaiting:
        with pytest.raises(Unreachable) as asynchronous:
            await awaiting.create_workspace("x")
    for caught in (blocking, asynchronous):
        assert (caught.value.fault, caught.value.may_have_happened) == (Fault.READ_TIMEOUT, True)
