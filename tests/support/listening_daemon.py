"""A real daemon with a listener, and requests to it."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.support.daemon_process import Daemon, running_daemon

TOKEN = "a-token-of-the-tests-1234"
ORIGIN_DEADLINE_SECONDS = 30.0


def pipeline(name: str, source: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the settings of a pipeline for CSV files with the columns ``part`` and ``mass``. ``more``: further settings."""
    return {
        "name": name,
        "source": {"connector": "directory", "pattern": "*.csv", "settle_seconds": 0, **source},
        "entries": {"key": f"{name}.{{part}}", "value": "{mass}", "type": "scalar"},
        "sink": {"workspace": "Bench", "label": f"Sink {name}"},
        **more,
    }


def write_listening_configuration(
    folder: Path, url: str, pipelines: Sequence[Mapping[str, Any]], listen: Mapping[str, Any] | None = None
) -> Path:
    """Write a configuration with a listener. Without ``listen``, the listener uses a free port."""
    path = folder / "ingestd.yaml"
    settings = {
        "service": {"url": url, "api_key": "test-key", "client_id": "test"},
        "state": "var/ingestd.db",
        "listen": dict(listen or {"address": "127.0.0.1:0"}),
        "pipelines": list(pipelines),
    }
    path.write_text(json.dumps(settings))  # JSON is valid YAML.
    return path


@contextlib.contextmanager
def listening_daemon(folder: Path, config: Path, **extra: str) -> Iterator[tuple[Daemon, httpx.Client]]:
    """Run a daemon; yield the daemon and a client of its listener. ``extra``: variables of the daemon's environment."""
    # Without a service manager, because no part of a long test reads the status messages.
    with running_daemon(folder, "run", "-c", str(config), NOTIFY_SOCKET="", **extra) as (daemon, _):
        address = daemon.wait_for("listener_opened")["address"]
        transport = None if address.startswith("http") else httpx.HTTPTransport(uds=address)
        base = address if transport is None else "http://localhost"
        with httpx.Client(base_url=base, transport=transport, timeout=ORIGIN_DEADLINE_SECONDS) as client:
            yield daemon, client


def connect(client: httpx.Client) -> socket.socket:
    """Open a plain connection to the listener of a client."""
    return socket.create_connection((client.base_url.host, client.base_url.port or 80), timeout=ORIGIN_DEADLINE_SECONDS)


def held_scene(folder: Path, url: str, listen: Mapping[str, Any]) -> Path:
    """Write files, and a configuration with pipelines that deliver, reject records, wait for files, hold a run or are away."""
    for name in ("drop", "guarded", "hostile"):
        (folder / name).mkdir()
    (folder / "drop" / "masses.csv").write_text("part,mass\n1,0.10\n2,0.20\n,0.30\n")
    (folder / "drop" / "empty.csv").write_text("")
    rows = "".join(f"{number},{number}.5\n" for number in range(100))
    (folder / "guarded" / "budget.csv").write_text(f"part,mass\n{rows}")
    (folder / "hostile" / f"{HOSTILE_NAME}.csv").write_text(f'part,mass\n"{HOSTILE_TEXT}",1\n,"{HOSTILE_TEXT}"\n')
    guard = {"changed": 30, "minimum": 20}
    pipelines = [
        pipeline("masses", {"path": "drop", "empty_seconds": 3_600}),
        pipeline("guarded", {"path": "guarded"}, guard=guard),
        pipeline("hostile", {"path": "hostile"}),
        pipeline("away", {"path": "away", "canary": ".mounted"}),
    ]
    return write_listening_configuration(folder, url, pipelines, listen)


def hold_a_run(folder: Path, daemon: Daemon) -> int:
    """Wait for the first readings, change each row of the guarded file, and return the number of the held run."""
    for name in ("guarded", "masses", "hostile"):
        daemon.wait_for("partition_acknowledged", pipeline=name)
    daemon.wait_for("source_away")
    rows = "".join(f"{number},{number}.7\n" for number in range(100))
    (folder / "guarded" / "new").write_text(f"part,mass\n{rows}")
    (folder / "guarded" / "new").replace(folder / "guarded" / "budget.csv")
    return int(daemon.wait_for("run_held")["run"])


HOSTILE_NAME = "<img src=x onerror=alert(1)>\u202e"
HOSTILE_TEXT = "</td><script>document.title='changed'</script><b>&amp;"
