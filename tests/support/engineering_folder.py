"""A drop folder with a configuration and its daemon, and another program that writes to the same service."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from tests.support.daemon_process import Daemon, environment, held_run, here, running_daemon
from tests.support.document_server import DocumentServer
from tests.support.workspaced_process import WorkspaceService, new_key

LABEL = "Budget"


class Service(Protocol):
    """The properties of a service that the folder needs."""

    @property
    def url(self) -> str: ...

    @property
    def api_key(self) -> str: ...


class OtherProgram:
    """Another program that uses the same workspace over HTTP, with its own key."""

    def __init__(self, url: str, api_key: str) -> None:
        self._http = httpx.Client(base_url=url, headers={"x-api-key": api_key, "ClientId": "other-program"}, timeout=30)
        self.url = url
        self.api_key = api_key

    def make_workspace(self, label: str = "Bench") -> None:
        self._done(self._http.post("/v1/workspace", json={"label": label}))

    def replace_workspace(self) -> None:
        """Remove the workspace with its content, and create an empty workspace."""
        (workspace,) = self._done(self._http.get("/v1/workspace")).json()
        self._done(self._http.delete(f"/v1/workspace/{workspace['id']}"))
        self.make_workspace()

    def values(self) -> dict[str, str | None]:
        found = self._done(self._http.get(self._sink())).json()["entries"]
        return {entry["key"]: entry["value"] for entry in found}

    def change(self, key: str, value: str) -> None:
        self._done(self._http.patch(f"{self._sink()}/{quote(key, safe='')}", json={"value": value}))

    def remove(self, key: str) -> None:
        self._done(self._http.delete(f"{self._sink()}/{quote(key, safe='')}"))

    def add(self, key: str, value: str) -> None:
        self._done(self._http.post(self._sink(), json={"key": key, "value": value, "dataType": "scalar"}))

    def remove_sink(self) -> None:
        self._done(self._http.delete(self._sink()))

    def close(self) -> None:
        self._http.close()

    def has_sink(self) -> bool:
        return bool(self._sinks())

    def _sink(self) -> str:
        (sink,) = self._sinks()
        return sink

    def _sinks(self) -> list[str]:
        (workspace,) = self._done(self._http.get("/v1/workspace")).json()
        sinks = self._done(self._http.get(f"/v1/workspace/{workspace['id']}/data-sink/list")).json()
        return [f"/v1/workspace/{workspace['id']}/data-sink/{sink['id']}" for sink in sinks if sink["label"] == LABEL]

    @staticmethod
    def _done(response: httpx.Response) -> httpx.Response:
        response.raise_for_status()
        return response


class Folder:
    """The folder ``drop`` below ``path``, and the configuration next to it."""

    def __init__(self, path: Path, service: Service, *, pipeline: str = "", top: str = "", after: str = "") -> None:
        self.path = path
        self.drop = path / "drop"
        self.drop.mkdir(parents=True, exist_ok=True)
        self.config = path / "ingestd.yaml"
        self.config.write_text(
            f"service: {{url: '{service.url}', api_key: '{service.api_key}'}}\nstate: var/ingestd.db\n{top}\npipelines:\n"
            f"  - {{name: budget, source: {{connector: directory, path: drop, settle_seconds: 0{after}}},\n"
            f"     sink: {{workspace: Bench, label: {LABEL}}},\n"
            f"     entries: {{key: '{{part}}.mass', value: '{{mass}}'}}{pipeline}}}\n",
            encoding="utf-8",
        )

    def write(self, text: str, name: str = "budget.csv") -> None:
        """Write a file atomically, as `mv` does."""
        waiting = self.path / f"{name}.new"
        waiting.write_text(text, encoding="utf-8")
        waiting.rename(self.drop / name)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command; return without waiting for its end."""
        return subprocess.Popen(
            [sys.executable, "-m", "ingestd", *words, "-c", str(self.config)],
            cwd=self.path, env=environment(self.path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def here(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in this process."""
        return here(self.path, *words, "-c", str(self.config), **variables)

    def held_run(self) -> dict[str, Any]:
        """Return the only held run."""
        return held_run(self.path)

    @contextmanager
    def daemon(self, *words: str) -> Iterator[Daemon]:
        with running_daemon(self.path, "run", "-c", str(self.config), *words) as (daemon, manager):
            manager.wait_for("READY")
            yield daemon


@contextmanager
def program_beside_document_server() -> Iterator[OtherProgram]:
    """Run a service that implements only the interface document; yield another program that uses it."""
    with DocumentServer() as server:
        server.workspace("Bench")
        program = OtherProgram(server.url, server.api_key)
        try:
            yield program
        finally:
            program.close()


@contextmanager
def program_beside_workspaced(data: Path) -> Iterator[OtherProgram]:
    """Run workspaced as a process; yield another program that uses it."""
    key = new_key(data)
    with WorkspaceService(data) as service:
        program = OtherProgram(service.url, key)
        program.make_workspace()
        try:
            yield program
        finally:
            program.close()


def timeless(text: str) -> str:
    """Replace the parts of a command's output that differ between runs: times and ids of requests."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<moment>", text)
    return re.sub(r"request [0-9A-Za-z_-]{8,}", "request <id>", text)
