"""Servers with the folder ``drop``, in the place of the folder on disk that the tests of the directory connector use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.remote import RemoteConnector, RemoteOptions
from ingestd.sdk import Connector, SourceContext
from tests.support.object_server import ObjectServer
from tests.support.remote_places import RemoteFlow, open_remote, replace_later
from tests.support.scripted_bucket import ScriptedBucket, scripted_bucket
from tests.support.sftp_server import SftpServer


@pytest.fixture(params=["sftp", "s3"])
def server(request: pytest.FixtureRequest) -> SftpServer | ObjectServer:
    found: SftpServer | ObjectServer = request.getfixturevalue(
        "sftp_server" if request.param == "sftp" else "object_server"
    )
    return found


@pytest.fixture
def bucket() -> Iterator[ScriptedBucket]:
    with scripted_bucket() as running:
        yield running


@pytest.fixture
def clock() -> list[float]:
    return [4e9]


@pytest.fixture
def connect(clock: list[float], tmp_path: Path) -> Iterator[Callable[[dict[str, Any]], RemoteConnector]]:
    """Return a function that makes a connector from options. All of them have the time of ``clock``."""
    connectors: list[RemoteConnector] = []

    def opened(options: dict[str, Any]) -> RemoteConnector:
        context = SourceContext(pipeline="t", base=tmp_path, now=lambda: clock[0])
        connectors.append(RemoteConnector(RemoteOptions.model_validate(options), context))
        return connectors[-1]

    yield opened
    for connector in connectors:
        connector.close()


class RemoteDrop:
    """A folder ``drop`` on a server and connectors that read it, one for each simulated restart."""

    def __init__(self, base: Path, server: SftpServer | ObjectServer) -> None:
        self.base = base
        self.server = server
        self.folder = base / "drop"
        self.folder.mkdir()
        self.done = base / "done"
        self.now = 4_000_000_000.0
        self.connectors: list[Connector] = []

    def connector(self, **options: Any) -> Connector:
        context = SourceContext(pipeline="test", base=self.base, now=lambda: self.now)
        settings = {"path": "drop", "settle_seconds": 0} | options
        connector: Connector = open_remote(self.server, self.base, settings, context)
        self.connectors.append(connector)
        return connector

    def write(self, name: str, text: str = "part,mass\nA,0.10\n") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return replace_later(path, lambda: path.write_text(text, newline=""))


@pytest.fixture
def drop(tmp_path: Path, server: SftpServer | ObjectServer) -> Iterator[RemoteDrop]:
    found = RemoteDrop(tmp_path, server)
    yield found
    for connector in found.connectors:
        connector.close()


@pytest.fixture
def open_flow(tmp_path: Path, server: SftpServer | ObjectServer) -> Iterator[Callable[..., RemoteFlow]]:
    flows: list[RemoteFlow] = []

    def opened(**options: Any) -> RemoteFlow:
        flows.append(RemoteFlow(tmp_path, server, **options))
        return flows[-1]

    yield opened
    for flow in flows:
        flow.close()
