"""A source of each connector that can't be reached, or that stopped: every place that shows the daemon's state shows it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html import unescape
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.daemon_process import Daemon, here
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import listening_daemon, write_listening_configuration
from tests.support.rest_service import Sent, rest_service
from tests.support.sftp_server import SftpServer

CLOSED = "127.0.0.1:1"
"""An address at which nothing listens."""
SECONDS = 60.0
NAMES = {
    "database": "parts",
    "database-refused": "parts",
    "http": "parts",
    "http-refused": "parts",
    "mqtt": CLOSED,
    "opcua": CLOSED,
    "push": "bench",
}
"""The partition for which `why` is asked; of folders the file a.csv."""


def sources(folder: Path, server: SftpServer, rest: str, taken: str) -> dict[str, dict[str, Any]]:
    """Return sources that can't be read, by the name of their pipeline. A suffix after - makes another of a connector."""
    (folder / "other_hosts").write_text(f"[127.0.0.1]:{server.port} {(server.folder / 'other-host.pub').read_text()}")
    (folder / "locked.sqlite").write_text("this is no database")
    secret = {"type": "bearer", "token": "0123456789abcdef"}
    return {
        "database": {"connector": "database", "url": f"sqlite:///{folder}/none.sqlite", "table": "parts", "key": "id"},
        "database-refused": {
            "connector": "database", "url": f"sqlite:///{folder}/locked.sqlite", "table": "parts", "key": "id",
        },
        "directory": {"connector": "directory", "path": "none"},
        "file": {"connector": "file", "path": "none/a.csv"},
        "http": {"connector": "http", "url": f"http://{CLOSED}/parts"},
        "http-refused": {"connector": "http", "url": f"{rest}/parts"},
        "log": {"connector": "log", "path": "none"},
        "mqtt": {"connector": "mqtt", "url": f"mqtt://{CLOSED}", "topics": [{"filter": "a/#"}]},
        "opcua": {"connector": "opcua", "url": f"opc.tcp://{CLOSED}", "browse": "Line1/**", "security": "none"},
        "push": {"connector": "push", "path": "/bench", "address": taken, "auth": secret},
        "remote": {"connector": "remote", **server.options("none")},
        "remote-refused": {"connector": "remote", **server.options("", known_hosts=str(folder / "other_hosts"))},
        "remote-bucket": {
            "connector": "remote", "url": "s3://bench/drop", "endpoint": f"http://{CLOSED}", "access_key": "a",
            "secret_key": "b", "timeout_seconds": 0.5,
        },
    }  # fmt: skip


@pytest.fixture
def scene(tmp_path: Path, sftp_server: SftpServer) -> Iterator[tuple[Path, Daemon, httpx.Client]]:
    with DocumentServer() as server, rest_service() as rest:
        rest.before = lambda _: Sent({}, status=403)
        server.workspace("Bench")
        taken = rest.url.removeprefix("http://")
        found = sources(tmp_path, sftp_server, rest.url, taken)
        scheduled = {"database", "database-refused", "http", "http-refused"}
        pipelines = [
            {
                "name": name,
                "source": source,
                "entries": {"key": f"{name}.{{id}}", "value": "{id}"},
                "sink": {"workspace": "Bench", "label": f"Sink {name}"},
                **({"schedule": {"every": "1h"}} if name in scheduled else {}),
            }
            for name, source in found.items()
        ]
        config = write_listening_configuration(tmp_path, server.url, pipelines)
        with listening_daemon(tmp_path, config) as (daemon, client):
            yield config, daemon, client


def test_a_source_that_can_not_be_read_is_shown_everywhere(scene: tuple[Path, Daemon, httpx.Client]) -> None:
    config, daemon, client = scene
    settings = json.loads(config.read_text())
    names = {one["name"] for one in settings["pipelines"]}
    covered = {one["source"]["connector"] for one in settings["pipelines"]}
    assert covered == {
        one.name for one in entry_points(group="ingestd.connectors") if one.module.startswith("connectors")
    }

    def reasons() -> list[str]:
        found: list[str] = client.get("/readyz").json()["reasons"]
        return found

    def is_named(name: str, sentences: list[str]) -> bool:
        return any(re.match(f"{name} is (unavailable|failed): ", one) for one in sentences)

    until = time.monotonic() + SECONDS
    while not all(is_named(name, reasons()) for name in names):
        assert time.monotonic() < until, [name for name in names if not is_named(name, reasons())]
        time.sleep(0.1)
    failures = {name: next(one.split(": ", 1)[1] for one in reasons() if is_named(name, [one])) for name in names}
    assert client.get("/readyz").status_code == 503

    metrics = client.get("/metrics").text
    assert [name for name in names if f'ingestd_source_available{{pipeline="{name}"}} 0.0' not in metrics] == []

    text = here(config.parent, "status", "-c", str(config)).stdout
    assert [name for name, why in failures.items() if not shows(text, name, why)] == []

    status = json.loads(here(config.parent, "status", "--json", "-c", str(config)).stdout)
    found = {one["name"]: one["state"] for one in status["states"]}
    assert set(found.values()) == {"unavailable", "failed"}

    top = here(config.parent, "top", "--once", "-c", str(config)).stdout.splitlines()
    states = {line.split()[0]: line.split()[1] for line in top if line.split()[:1] and line.split()[0] in names}
    assert states == found == client.get("/readyz").json()["pipelines"]

    page = client.get("/").text
    assert [name for name in names if f"/pipelines/{name}" not in page] == []
    for name, why in failures.items():
        assert why[:40] in unescape(client.get(f"/pipelines/{name}").text), name

    logged = {one.get("pipeline") for one in daemon.events if one.get("event") in LOGGED}
    assert names - logged == set()

    explained = here(config.parent, "why", "a.csv", "-c", str(config)).stdout
    assert [name for name, why in failures.items() if name not in NAMES and not shows(explained, name, why)] == []
    for name, partition in NAMES.items():  # the page does what the command does, without a process for each
        assert failures[name][:40] in unescape(client.get("/files", params={"name": partition}).text), name


LOGGED = {"source_away", "source_stopped", "partition_rejected"}


def shows(text: str, name: str, why: str) -> bool:
    """Return whether a line about the pipeline has the reason."""
    return any(name in line and why[:40] in line for line in text.splitlines())
