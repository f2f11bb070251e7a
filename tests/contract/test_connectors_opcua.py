"""The opcua connector passes the conformance suite with a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.opcua import OpcuaConnector, OpcuaOptions
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig
from tests.support.opcua_server import OpcuaServer, opcua_server

START = {f"V{number}": (number + 0.1, "Double") for number in range(7)}


class ServerRig(Rig):
    """Seven variables of a server that runs for all tests."""

    def __init__(self, server: OpcuaServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._opened: list[Connector] = []
        for name in set(server.values) - set(START):
            server.delete(name)
        server.put(START)

    def connector(self) -> Connector:
        return self._open(self._server.url)

    def add(self) -> None:
        self._server.put({"V8": (1e-7, "Double")})

    def change(self) -> None:
        self._server.put({"V3": (33.25, "Double")})

    def remove(self) -> None:
        self._server.delete("V2")

    def add_unreadable(self) -> bool:
        self._server.put({"V9": (1.5, "Double")})
        self._server.spoil("V9", "BadSensorFailure")
        return True

    def broken(self) -> Connector:
        return self._open("opc.tcp://127.0.0.1:1")

    def close(self) -> None:
        for one in self._opened:
            one.close()

    def _open(self, url: str) -> Connector:
        options = {"url": url, "browse": "Line1/**", "mode": "poll", "security": "none", "deletes": "remove"}
        context = SourceContext(pipeline="t", base=self._folder, now=time.time, kept_folder=self._folder)
        self._opened.append(OpcuaConnector(OpcuaOptions.model_validate(options), context))
        return self._opened[-1]


@pytest.fixture(scope="module")
def server() -> Iterator[OpcuaServer]:
    with opcua_server(START) as running:
        yield running


class TestOpcua(ConnectorConformance):
    @pytest.fixture
    def rig(self, server: OpcuaServer, tmp_path: Path) -> Iterator[Rig]:
        opened = ServerRig(server, tmp_path)
        yield opened
        opened.close()
