"""Two hosts on one PostgreSQL behind HAProxy, upgraded as docs/how-to/rolling-upgrade.md says, while clients write."""

from __future__ import annotations

import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.free_port import free_port
from tests.support.haproxy import DEADLINE_SECONDS, HOSTS, PAGE, Proxy, wait_for
from tests.support.later_release import Release, later_release
from tests.support.postgres_databases import databases
from tests.support.workspaced_process import WorkspaceService, workspaced

WRITERS = 2
ADD = "-- oldest program: 1\n" + "".join(
    f"ALTER TABLE {table} ADD COLUMN more bigint;\n"
    for table in ("workspace", "data_sink", "data_sink_entry", "entry_change", "audit_row")
)
REMOVE = "-- oldest program: 2\nALTER TABLE workspace DROP COLUMN more;\n"


@dataclass(slots=True)
class Writer:
    """A client that writes to its own workspace and never repeats a request. ``failures``: what went wrong."""

    workspace: str
    sink: str
    values: dict[str, list[str]] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    done: int = 0

    def write(self, http: httpx.Client, stop: threading.Event) -> None:
        """Update entries, read them and create sinks until ``stop``."""
        for number in count():
            if stop.is_set():
                return
            key, value = f"k{number % 50}", str(number)
            try:
                if number % 7 == 0:
                    path = f"/v1/workspace/{self.workspace}/data-sink"
                    response, wanted = http.post(path, json={"label": value}), 201
                    self.labels.append(value)
                else:
                    response, wanted = http.post(f"{self.sink}/mass", json={"key": key, "value": value}), 200
                    self.values.setdefault(key, []).append(value)
                    read = http.get(f"{self.sink}/{key}")
                    if read.json().get("value") != value:
                        self.failures.append(f"GET {key}: {read.status_code} {read.text}")
            except (httpx.HTTPError, ValueError) as error:
                self.failures.append(repr(error))
            else:
                if response.status_code != wanted:
                    self.failures.append(f"{response.status_code} {response.text}")
            self.done += 1


@contextmanager
def load(proxy: Proxy, key: str) -> Iterator[list[Writer]]:
    """Write through the proxy until the block ends."""
    stop = threading.Event()
    with httpx.Client(
        base_url=proxy.url,
        verify=proxy.context,
        headers={"x-api-key": key, "ClientId": "tests"},
        timeout=DEADLINE_SECONDS,
    ) as http:
        writers = []
        for number in range(WRITERS):
            workspace = http.post("/v1/workspace", json={"label": f"w{number}"}).json()["id"]
            sink = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"]
            writers.append(Writer(workspace, sink))
        threads = [threading.Thread(target=writer.write, args=(http, stop)) for writer in writers]
        for thread in threads:
            thread.start()
        try:
            yield writers
        finally:
            stop.set()
            for thread in threads:
                thread.join(DEADLINE_SECONDS)


def wait_for_progress(writers: list[Writer]) -> None:
    """Wait until each writer has got further responses."""
    wanted = [writer.done + 10 for writer in writers]
    wait_for(lambda: all(writer.done >= least for writer, least in zip(writers, wanted, strict=True)))


class Site:
    """The hosts, which share a database and a folder."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self.url = url
        self.port = free_port()
        self._stack = ExitStack()
        self.environment = {
            "WORKSPACED_TRUSTED_PROXIES": "127.0.0.1",
            "WORKSPACED_DRAIN_SECONDS": "600",  # the test waits until the proxy has noticed, on a slow machine too
        }
        assert set(re.findall(r"^Environment=(\w+)=", PAGE, re.MULTILINE)) == self.environment.keys()
        self.environment |= {
            "WORKSPACED_HISTORY_CHANGES": "1000",
            "WORKSPACED_LOG_REQUESTS": "true",
        }

    def start(self, address: str, release: Release | None = None) -> WorkspaceService:
        words = ("--host", address, "--port", str(self.port), "--database", self.url)
        environment = {**self.environment, **(release.environment if release else {})}
        return self._stack.enter_context(WorkspaceService(self._folder / "data", *words, environment=environment))

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with databases() as made, made.empty() as url:
        made_site = Site(tmp_path, url)
        try:
            yield made_site
        finally:
            made_site.close()


@pytest.mark.timeout(300)
def test_hosts_are_upgraded_one_after_the_other_without_a_failed_or_repeated_request(
    site: Site, tmp_path: Path
) -> None:
    # contract P3, P5
    added = later_release(tmp_path / "added", ADD)
    removed = later_release(tmp_path / "removed", ADD, REMOVE)
    assert workspaced("migrate", "--database", site.url).returncode == 0
    key = workspaced("keys", "create", "svc:test", "--role", "owner", "--database", site.url).stdout.strip()
    with Proxy(tmp_path, site.port) as proxy:
        hosts = {name: site.start(address) for name, address in HOSTS.items()}
        proxy.wait_until(a="UP", b="UP")
        with load(proxy, key) as writers:
            wait_for_progress(writers)
            seen = {name: used_workspaces(host) for name, host in hosts.items()}
            assert not seen["a"] & seen["b"]  # a workspace has one host

            migrated = added.run("migrate", "--database", site.url)
            assert migrated.stdout.endswith(
                "from schema 1 to 2. This program can use schemas 2 to 2, and newer ones that permit it.\n"
            ), migrated.stderr
            wait_for_progress(writers)  # programs that don't know the step

            for name, address in HOSTS.items():
                hosts[name].process.send_signal(signal.SIGTERM)
                proxy.wait_until(**{name: "DOWN"})
                wait_for_progress(writers)
                assert hosts[name].process.poll() is None
                assert hosts[name].stop() == 0
                hosts[name] = site.start(address, added)
                proxy.wait_until(a="UP", b="UP")
                wait_for_progress(writers)

            migrated = removed.run("migrate", "--database", site.url)
            assert migrated.stdout.endswith(
                "from schema 2 to 3. This program can use schemas 2 to 3, and newer ones that permit it.\n"
            ), migrated.stderr
            wait_for_progress(writers)
            require_refusal_of_an_older_program(site, key)
        assert [writer.failures for writer in writers] == [[]] * WRITERS
        assert set(proxy.column("wretr").values()) == {"0"}  # the proxy has repeated nothing
        require_each_write_once(site.url, writers)


def used_workspaces(host: WorkspaceService) -> set[str]:
    """Return the workspaces of the requests that a host has logged."""
    paths = [str(event.get("path", "")) for event in host.events]
    return {path.split("/")[3] for path in paths if path.startswith("/v1/workspace/")}


def require_refusal_of_an_older_program(site: Site, key: str) -> None:
    """Start a program that the last step has excluded, and have it write."""
    older = site.start("127.0.1.13")
    ready = httpx.get(f"{older.url}/readyz", timeout=DEADLINE_SECONDS)
    assert (ready.status_code, ready.json()["code"]) == (503, "schema_ahead")
    assert (
        "has schema 3, for programs that know schema 2. This program can use schemas 1 to 1," in ready.json()["detail"]
    )
    with older.client(key) as http:
        codes = [http.post("/v1/workspace", json={"label": "older"}).status_code for _ in range(20)]
    assert set(codes) == {503}


def require_each_write_once(url: str, writers: list[Writer]) -> None:
    """Compare the stored values, their history and the created sinks with what each writer sent."""
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM workspace WHERE label = 'older'").fetchone() == (0,)
        for writer in writers:
            identifier = writer.sink.rpartition("/")[2]
            sink = connection.execute("SELECT number, workspace FROM data_sink WHERE id = %s", [identifier]).fetchone()
            assert sink
            number, workspace = sink
            labels = connection.execute("SELECT label FROM data_sink WHERE workspace = %s", [workspace]).fetchall()
            assert Counter(label for (label,) in labels) == Counter(["s", *writer.labels])
            for key, values in writer.values.items():
                replaced = connection.execute(
                    "SELECT old_value FROM entry_change WHERE sink = %s AND key = %s ORDER BY number", [number, key]
                ).fetchall()
                stored = connection.execute(
                    "SELECT value FROM data_sink_entry WHERE sink = %s AND key = %s", [number, key]
                ).fetchall()
                assert [value for (value,) in [*replaced, *stored] if value is not None] == values
