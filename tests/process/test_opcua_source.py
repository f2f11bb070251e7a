"""The daemon and a real OPC UA server, each killed and started again, with a real workspace service.

``INGESTD_OPCUA_RESTARTS`` and ``INGESTD_OPCUA_KILLS`` are the numbers of kills of the server and of the daemon; `make kill-test`
does more.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.daemon_process import Daemon, environment
from tests.support.opcua_server import OpcuaServer, opcua_server
from tests.support.recorded_workspaced import RecordedWorkspaced

RESTARTS = int(os.environ.get("INGESTD_OPCUA_RESTARTS", "2"))
KILLS = int(os.environ.get("INGESTD_OPCUA_KILLS", "2"))
VARIABLES = 30
DEADLINE_SECONDS = 60.0


def configure(folder: Path, server: OpcuaServer, service: RecordedWorkspaced) -> None:
    source = {
        "connector": "opcua", "url": server.url, "browse": "Line1/**", "security": "none", "sampling": 0.1,
        "timeout_seconds": 2, "deletes": "remove",
    }  # fmt: skip
    pipeline = {"name": "line", "source": source, "entries": {"key": "{path}", "value": "{value}"}}
    service.write_configuration(folder, pipeline, label="Line")


def wait_until_equal(service: RecordedWorkspaced, server: OpcuaServer, daemon: Daemon) -> None:
    wanted = {f"Line1/{name}": str(value) for name, (value, _) in server.values.items()}
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (found := service.plain_values("Line")) != wanted:
        assert time.monotonic() < deadline, (set(found.items()) ^ set(wanted.items()), daemon.lines[-20:])
        time.sleep(0.05)  # the service reports nothing


@pytest.mark.timeout(120 + 30 * RESTARTS)
def test_the_sink_equals_the_server_after_each_of_its_restarts(tmp_path: Path) -> None:
    rng = random.Random(5)
    start = {f"V{number}": (number, "Int32") for number in range(VARIABLES)}
    with opcua_server(start) as server, RecordedWorkspaced(tmp_path / "workspaced") as service:
        configure(tmp_path, server, service)
        daemon = Daemon(["ingestd", "run"], env=environment(tmp_path), cwd=tmp_path)
        try:
            daemon.wait_for("partition_read")
            for restart in range(RESTARTS):
                server.put({f"V{rng.randrange(VARIABLES)}": (1000 * restart + one, "Int32") for one in range(5)})
                if rng.random() < 0.5:
                    wait_until_equal(service, server, daemon)
                server.kill()
                server.values |= {f"V{rng.randrange(VARIABLES)}": (-1000 * restart - one, "Int32") for one in range(5)}
                server.values.pop(f"V{VARIABLES + restart - 1}", None)
                server.values[f"V{VARIABLES + restart}"] = (restart, "Int32")
                server.namespaces_before = rng.randrange(4)
                server.start()
                server.put({"V0": (7_000_000 + restart, "Int32")})
                wait_until_equal(service, server, daemon)
        finally:
            daemon.close()


@pytest.mark.timeout(120 + 30 * KILLS)
def test_the_sink_equals_the_server_although_the_daemon_is_killed_again_and_again(tmp_path: Path) -> None:
    rng = random.Random(11)
    start = {f"V{number}": (number, "Int32") for number in range(VARIABLES)}
    with opcua_server(start) as server, RecordedWorkspaced(tmp_path / "workspaced") as service:
        configure(tmp_path, server, service)
        for kill in range(KILLS):
            daemon = Daemon(["ingestd", "run"], env=environment(tmp_path), cwd=tmp_path)
            try:
                if rng.random() < 0.8:
                    daemon.wait_for("partition_read")
                for one in range(5):
                    server.put({f"V{rng.randrange(VARIABLES)}": (1000 * (kill + 1) + one, "Int32")})
                time.sleep(rng.uniform(0, 0.3))  # the moment of the crash; no condition is waited for
                assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL, "\n".join(daemon.lines[-30:])
            finally:
                daemon.close()
            server.put({f"V{rng.randrange(VARIABLES)}": (-1000 * (kill + 1), "Int32")})  # while no daemon runs
        daemon = Daemon(["ingestd", "run"], env=environment(tmp_path), cwd=tmp_path)
        try:
            wait_until_equal(service, server, daemon)
        finally:
            daemon.close()
