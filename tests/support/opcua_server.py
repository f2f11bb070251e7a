"""A real OPC UA server for tests, which can be killed and restarted on the same port."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connectors.opcua.options import OpcuaOptions
from connectors.opcua.security import application_certificate
from ingestd.sdk import SourceContext
from tests.support.free_port import free_port

Value = tuple[Any, str]
"""A value, and the name of its type."""


class OpcuaServer:
    """A server with variables below Objects/Line1. A variable named ``Oven.…`` is below Objects/Line1/Oven."""

    def __init__(
        self,
        values: Mapping[str, Value],
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        password: str = "",
    ) -> None:
        self.values = dict(values)
        self.password = password
        self.port = free_port()
        self.namespaces_before = 0
        self.certificate, self.key = certificate, key
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"opc.tcp://127.0.0.1:{self.port}/line"

    def start(self) -> None:
        """Start the server with the current values, and wait until it listens."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.opcua_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        configuration = {
            "url": self.url,
            "values": self.values,
            "namespaces_before": self.namespaces_before,
            "certificate": str(self.certificate or ""),
            "key": str(self.key or ""),
            "password": self.password,
        }
        assert self._exchange(configuration) == "ready"

    def put(self, values: Mapping[str, Value]) -> None:
        """Write values. A new name becomes a new variable."""
        self.values.update(values)
        self._command(put=dict(values))

    def spoil(self, name: str, status: str) -> None:
        """Give a variable a status without a value, such as ``BadSensorFailure``."""
        self._command(status={name: status})

    def delete(self, name: str) -> None:
        """Remove a variable."""
        del self.values[name]
        self._command(delete=[name])

    def distrust(self, *, clients: bool) -> None:
        """Refuse the certificates of all clients, or trust them."""
        self._command(distrust=clients)

    def kill(self) -> None:
        """Kill the process, so that clients are not notified."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def signal(self, number: int) -> None:
        """Send a signal to the process, such as SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(number)

    def _command(self, **command: Any) -> None:
        assert self._exchange(command) == "done"

    def _exchange(self, message: Mapping[str, Any]) -> str:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


def server_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate of a server with its key; return the file of the certificate and that of the key, here the same."""
    content = folder / "server.pem"
    own = application_certificate(
        OpcuaOptions.model_validate({"url": "opc.tcp://localhost", "nodes": ["i=2258"]}),
        SourceContext(pipeline="server", base=folder, now=time.time, kept_folder=folder / "server"),
    )
    content.write_bytes(own.certificate)
    return content, content


@contextmanager
def opcua_server(values: Mapping[str, Value], **options: Any) -> Iterator[OpcuaServer]:
    """Run a server."""
    server = OpcuaServer(values, **options)
    try:
        server.start()
        yield server
    finally:
        server.kill()
