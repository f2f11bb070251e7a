"""Daemons of one configuration, one of them active, as real processes with the real service."""

from __future__ import annotations

import base64
import json
import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.daemon_process import Daemon, environment, held_run, here
from tests.support.free_port import free_port
from tests.support.keeping_relay import KeepingRelay
from tests.support.postgres_databases import Databases
from tests.support.small_disk import small_disk
from tests.support.workspaced_process import WorkspaceService, new_key

DEADLINE_SECONDS = 60.0
"""Of a take-over on a loaded machine."""


class Site:
    """A service, a shared drop folder and a place of shipments; `host` starts a daemon on a host of its own."""

    def __init__(self, folder: Path, **pipeline: Any) -> None:
        self.folder = folder
        self.drop, self.place = folder / "drop", folder / "place"
        self.drop.mkdir()
        self.key = new_key(folder / "service")
        self._stack = ExitStack()
        history, self._admin_port = {"WORKSPACED_HISTORY_CHANGES": "100"}, str(free_port())
        self.service = self._stack.enter_context(
            WorkspaceService(folder / "service", "--admin-port", self._admin_port, environment=history)
        )
        self.http = self._stack.enter_context(self.service.client(self.key))
        self.workspace = str(self.http.post("/v1/workspace", json={"label": "Bench"}).json()["id"])
        self.pipeline: dict[str, Any] = {
            "name": "parts",
            "source": {
                "connector": "file", "path": str(self.drop / "a.csv"), "settle_seconds": 0, "deletes": "remove",
            },
            "entries": {"key": "{part}", "value": "{mass}"},
            "sink": {"workspace": "Bench", "label": "Parts"},
        }  # fmt: skip
        self.pipeline |= pipeline
        self.pipelines = [self.pipeline]
        self.url = self.service.url
        self.standby: dict[str, Any] = {"lease_seconds": 3, "ship_seconds": 1}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def host(self, name: str, *, url: str = "", place: str = "") -> Daemon:
        """Start the daemon of a host, with a state file of its own."""
        own = self.folder / name
        own.mkdir(exist_ok=True)
        settings = {
            "service": {"url": url or self.url, "api_key": self.key, "read_timeout_seconds": 60},
            "state": "var/ingestd.db",
            "standby": self.standby,
            "pipelines": self.pipelines,
        }
        (own / "ingestd.yaml").write_text(json.dumps(settings))
        command = ["ingestd", "run", "--standby", place or str(self.place)]
        daemon = Daemon(command, env=environment(own), cwd=own)
        self._stack.enter_context(closing(daemon))
        return daemon

    def write(self, file: str, **entries: str) -> None:
        written = self.folder / "being-written"
        written.write_text("part,mass\n" + "".join(f"{part},{mass}\n" for part, mass in entries.items()))
        written.rename(self.drop / file)

    def sink(self, label: str) -> str | None:
        listed = self.http.get(f"/v1/workspace/{self.workspace}/data-sink/list").json()
        found = [one["id"] for one in listed if one["label"] == label]
        return f"/v1/workspace/{self.workspace}/data-sink/{found[0]}" if found else None

    def read(self, label: str = "Parts") -> dict[str, str]:
        sink = self.sink(label)
        return {one["key"]: one["value"] for one in self.http.get(sink).json()["entries"]} if sink else {}

    def value(self, key: str, label: str = "Parts") -> str | None:
        """Return the value of one entry without reading the sink; None if there is no such entry."""
        sink = self.sink(label)
        found = self.http.get(f"{sink}/{key}") if sink else None
        return found.json()["value"] if found is not None and found.status_code == 200 else None

    def sinks_read(self) -> int:
        """Return how often a sink was read completely, by the metrics of the service."""
        self.http.get("/v1/workspace")  # after it, earlier requests of this connection are counted
        metrics = httpx.get(f"http://127.0.0.1:{self._admin_port}/metrics", timeout=DEADLINE_SECONDS).text
        return sum(
            int(sample.value)
            for family in text_string_to_metric_families(metrics)
            for sample in family.samples
            if sample.name == "workspaced_http_requests_total"
            and (sample.labels["operation"], sample.labels["status"]) == ("data_sinks.get", "200")
        )

    def wait_for_entries(self, label: str, wanted: dict[str, str]) -> None:
        deadline = time.monotonic() + 300
        while (found := self.read(label)) != wanted:
            differ = sorted({*found.items()} ^ {*wanted.items()})
            assert time.monotonic() < deadline, f"{len(differ)} differ, such as {differ[:6]}"
            time.sleep(0.2)

    def history(self, key: str, label: str = "Parts") -> list[str | None]:
        """Return every value that an entry has had, the oldest first."""
        sink = self.sink(label)
        assert sink is not None
        path = sink.replace("data-sink", "data-sink-history")
        changes = self.http.get(f"{path}/entry/{key}").json()
        return [one["after"]["value"] if one["after"] else None for one in reversed(changes)]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as made:
        yield made


def status(site: Site, host: str) -> dict[str, Any]:
    return dict(json.loads(here(site.folder / host, "standby", "status", "--json").stdout)["standby"])


def is_active(daemon: Daemon, **fields: Any) -> dict[str, Any]:
    return daemon.wait_for("lease_taken", within_seconds=DEADLINE_SECONDS, **fields)


def delivered(daemon: Daemon, file: str, nth: int = 1) -> None:
    daemon.wait_for("partition_acknowledged", partition=file, nth=nth, within_seconds=DEADLINE_SECONDS)


def value_becomes(site: Site, key: str, value: str | None, *, within_seconds: float = DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + within_seconds
    while (found := site.value(key)) != value:
        assert time.monotonic() < deadline, f"{key} is {found!r}"
        time.sleep(0.05)


def test_a_standby_takes_over_from_a_killed_daemon_which_is_the_next_standby(site: Site) -> None:
    site.standby["encryption_key"] = base64.b64encode(bytes(32)).decode()
    site.write("a.csv", x="1", y="2")
    first = site.host("one")
    assert is_active(first)["restored"] == ""
    second, third = site.host("two"), site.host("three")
    delivered(first, "a.csv")
    for daemon in (second, third):
        daemon.wait_for("standby_waiting", within_seconds=DEADLINE_SECONDS)
    assert [status(site, host)["role"] for host in ("one", "two", "three")] == ["active", "standby", "standby"]
    first.stop(signal.SIGKILL)
    site.write("a.csv", x="3")
    # Both standbys wake when the lease ends, and one of them takes it.
    value_becomes(site, "x", "3")
    value_becomes(site, "y", None)
    taken = [host for host in ("two", "three") if status(site, host)["role"] == "active"]
    assert len(taken) == 1
    active, other = (second, third) if taken == ["two"] else (third, second)
    assert "shipment" in is_active(active)["restored"]
    active.wait_for("sinks_read_back", within_seconds=DEADLINE_SECONDS)
    assert other.process.poll() is None
    assert not [one for one in other.events if one.get("event") == "lease_taken"]
    # A planned change: nothing is left to be found out, and the standby does not wait for the end of the lease.
    assert here(site.folder / taken[0], "standby", "step-down").returncode == 0
    assert active.ended(seconds=DEADLINE_SECONDS) == 75
    is_active(other)
    site.write("a.csv", x="4", z="5")
    value_becomes(site, "z", "5")
    assert site.history("x") == ["1", "3", "4"]
    again = site.host(taken[0])
    again.wait_for("standby_waiting", within_seconds=DEADLINE_SECONDS)
    refused = here(site.folder / taken[0], "pause", "parts")
    assert (refused.returncode, "is a standby" in refused.stderr) == (75, True)
    # Its state file has the values of an earlier time.
    for words in (
        "trace x",
        "rejected list",
        "rejected show 1",
        "rejected export",
        "cursor show parts",
        "plan",
        "sync",
        "backup b",
    ):
        outdated = here(site.folder / taken[0], *words.split())
        assert (outdated.returncode, outdated.stderr) == (75, refused.stderr), words
    assert " is a standby: " in here(site.folder / taken[0], "top", "--once").stdout
    assert here(site.folder / (set(taken) ^ {"two", "three"}).pop(), "trace", "x").stdout.startswith("x = 4 ")
    assert here(site.folder / taken[0], "standby", "promote").returncode == 0
    assert other.ended(seconds=DEADLINE_SECONDS) == 75
    is_active(again)
    assert again.stop(seconds=DEADLINE_SECONDS) == 0


def test_a_killed_daemon_is_replaced_from_a_database_and_its_password_is_in_no_log(
    site: Site, postgres_databases: Databases
) -> None:
    with postgres_databases.empty() as url:
        place = url.replace("postgres@", "postgres:pa55-w0rd@")  # the server asks for none
        site.write("a.csv", x="1")
        first = site.host("one", place=place)
        is_active(first)
        delivered(first, "a.csv")
        second = site.host("two", place=place)
        second.wait_for("standby_waiting", within_seconds=DEADLINE_SECONDS)
        first.stop(signal.SIGKILL)
        site.write("a.csv", x="2")
        assert "shipment" in is_active(second)["restored"]
        value_becomes(site, "x", "2")
        found = status(site, "two")
        assert (found["lease_store"], found["place"]) == ("service", url.replace("postgres@", "***@"))
        assert second.stop(seconds=DEADLINE_SECONDS) == 0
        assert "pa55" not in "".join([*first.lines, *second.lines, json.dumps(found)])


def test_a_frozen_daemon_with_a_held_request_changes_nothing_after_a_take_over(site: Site) -> None:
    # contract M14: the new daemon has not written the entry when the late request arrives
    site.write("a.csv", x="first")
    with KeepingRelay(site.url) as relay:
        first = site.host("one", url=relay.url)
        is_active(first)
        value_becomes(site, "x", "first")
        second = site.host("two")
        second.wait_for("standby_waiting", within_seconds=DEADLINE_SECONDS)
        relay.hold_writes(b"/data-sink/")
        site.write("a.csv", x="late", y="late")
        relay.wait_for_held()
        first.process.send_signal(signal.SIGSTOP)
        site.write("a.csv", x="second")
        is_active(second)
        relay.pass_on()
        second.wait_for("sinks_read_back", within_seconds=DEADLINE_SECONDS)
        first.process.send_signal(signal.SIGCONT)
        assert first.ended(seconds=DEADLINE_SECONDS) == 75
        value_becomes(site, "x", "second")
        assert site.read() == {"x": "second"}
        assert site.history("x") == ["first", "second"]
        assert second.stop(seconds=DEADLINE_SECONDS) == 0


def test_a_value_that_was_pending_in_the_shipment_is_not_sent_after_a_newer_one(site: Site) -> None:
    site.standby["ship_seconds"] = 600
    source = {**site.pipeline["source"], "path": str(site.drop / "b.csv")}
    sink = {"workspace": "Bench", "label": "Other"}
    site.pipelines.append({**site.pipeline, "name": "other", "source": source, "sink": sink})
    site.write("a.csv", x="1")
    with KeepingRelay(site.url) as relay:
        first = site.host("one", url=relay.url)
        is_active(first)
        value_becomes(site, "x", "1")
        second = site.host("two")
        second.wait_for("standby_waiting", within_seconds=DEADLINE_SECONDS)
        relay.hold_writes(b"/data-sink/")
        site.write("a.csv", x="2")
        relay.wait_for_held()
        assert here(site.folder / "one", "cursor", "reset", "parts", "--all").returncode == 0  # ships
        relay.pass_on()
        value_becomes(site, "x", "2")
        site.write("a.csv", x="3")
        value_becomes(site, "x", "3")
        first.stop(signal.SIGKILL)
        (site.drop / "a.csv").rename(site.drop / "away")
        is_active(second)
        second.wait_for("source_away", within_seconds=DEADLINE_SECONDS)
        for number in range(5, 9):  # a lane that sends would have sent by then
            site.write("b.csv", other=str(number))
            site.wait_for_entries("Other", {"other": str(number)})
        assert status(site, "two")["waiting_sinks"] == ["Parts in Bench"]
        (site.drop / "away").rename(site.drop / "a.csv")
        second.wait_for("sinks_read_back", within_seconds=DEADLINE_SECONDS)
        site.write("a.csv", x="4")
        value_becomes(site, "x", "4")
        assert site.history("x") == ["1", "2", "3", "4"]
        assert second.stop(seconds=DEADLINE_SECONDS) == 0


@pytest.mark.timeout(900)
def test_after_a_take_over_nothing_is_wrong_left_over_or_older(tmp_path: Path) -> None:
    """A file with removals, an archive, a held run and rejections; the former daemon delivers what it has not shipped.

    `INGESTD_STANDBY_ENTRIES=100000` has more entries; the log (`--log-cli-level=warning`) has the time of the take-over.
    """
    count = int(os.environ.get("INGESTD_STANDBY_ENTRIES", "2000"))
    with Site(tmp_path) as site:
        (site.drop / "in").mkdir()
        source = {"settle_seconds": 0, "path": str(site.drop / "in"), "connector": "directory", "pattern": "*.csv"}
        site.pipelines += [
            {**site.pipeline, "name": "drops", "source": {**source, "after": "archive", "archive": str(site.drop / "done")},
             "sink": {"workspace": "Bench", "label": "Drops"}},
            {**site.pipeline, "name": "held", "source": {**site.pipeline["source"], "path": str(site.drop / "held.csv")},
             "sink": {"workspace": "Bench", "label": "Held"}},
        ]  # fmt: skip
        site.standby = {"lease_seconds": 5, "ship_seconds": 600}  # only commands have the state shipped
        parts = {f"p{number}": "1" for number in range(count)}
        site.write("a.csv", **parts)
        site.write("held.csv", **{f"h{number}": "1" for number in range(40)})
        first = site.host("one")
        is_active(first)
        site.wait_for_entries("Parts", parts)
        site.wait_for_entries("Held", {f"h{number}": "1" for number in range(40)})
        site.write("held.csv", h0="1")
        first.wait_for("run_held", within_seconds=DEADLINE_SECONDS)
        (site.drop / "in" / "bad.csv").write_text("part,mass\nd1,1\n,2\n")
        site.wait_for_entries("Drops", {"d1": "1"})
        second = site.host("two")
        second.wait_for("standby_waiting", within_seconds=DEADLINE_SECONDS)
        assert here(site.folder / "one", "pause", "held").returncode == 0  # ships
        assert here(site.folder / "one", "resume", "held").returncode == 0
        held = held_run(site.folder / "one")["run"]
        # What follows is delivered, and in no shipment.
        parts |= {f"p{number}": "2" for number in range(0, count, 4)} | {"new": "2"}
        for number in range(1, count, 20):
            del parts[f"p{number}"]
        site.write("a.csv", **parts)
        (site.drop / "in" / "later.csv").write_text("part,mass\nd1,2\nd2,2\n")
        site.wait_for_entries("Parts", parts)
        site.wait_for_entries("Drops", {"d1": "2", "d2": "2"})
        assert (site.drop / "in" / "later.csv").exists()  # it is archived after a shipment
        first.stop(signal.SIGKILL)
        began, readings = time.monotonic(), site.sinks_read()
        parts["p0"] = "3"
        del parts["new"]
        site.write("a.csv", **parts)
        # One entry is looked at: whole readings of a large sink would delay the take-over.
        value_becomes(site, "p0", "3", within_seconds=300)
        value_becomes(site, "new", None, within_seconds=300)
        logging.getLogger(__name__).warning("%.1f s for %d entries", time.monotonic() - began, count)
        second.wait_for("sinks_read_back", within_seconds=300)
        assert site.sinks_read() - readings == 3, "each sink is read back once"
        site.wait_for_entries("Parts", parts)
        site.wait_for_entries("Drops", {"d1": "2", "d2": "2"})
        assert site.read("Held") == {f"h{number}": "1" for number in range(40)}
        assert held_run(site.folder / "two")["run"] == held
        found = json.loads(here(site.folder / "two", "status", "--json").stdout)
        assert (found["rejected"], found["standby"]["role"]) == (1, "active")
        assert site.history("p0", "Parts") == ["1", "2", "3"]
        assert site.history("p4", "Parts") == ["1", "2"]
        assert site.history("d1", "Drops") == ["1", "2"]
        assert second.stop(seconds=DEADLINE_SECONDS) == 0


def test_a_killed_daemon_that_starts_again_takes_its_lease_at_once_and_reads_no_sink_back(site: Site) -> None:
    site.standby["lease_seconds"] = 600  # longer than this test
    site.write("a.csv", x="1", y="1")
    first = site.host("one")
    is_active(first)
    delivered(first, "a.csv")
    first.stop(signal.SIGKILL)
    readings = site.sinks_read()
    site.write("a.csv", x="2")
    again = site.host("one")
    assert is_active(again)["restored"] == ""
    value_becomes(site, "x", "2")
    value_becomes(site, "y", None)
    assert site.sinks_read() == readings
    assert site.history("x") == ["1", "2"]
    assert again.stop(seconds=DEADLINE_SECONDS) == 0


def test_a_full_place_delays_the_archive_and_nothing_else(site: Site, tmp_path: Path) -> None:
    source = {"connector": "directory", "path": str(site.drop), "pattern": "*.csv", "settle_seconds": 0}
    site.pipelines = [{**site.pipeline, "source": {**source, "after": "archive", "archive": str(tmp_path / "done")}}]
    with small_disk(tmp_path / "disk") as disk:
        daemon = site.host("one", place=str(tmp_path / "disk" / "place"))
        is_active(daemon)
        site.write("a.csv", x="1")
        delivered(daemon, "a.csv")
        disk.fill(daemon.process.pid)
        daemon.wait_for("shipment_failed", within_seconds=DEADLINE_SECONDS)
        site.write("b.csv", x="2")
        value_becomes(site, "x", "2")
        assert (site.drop / "b.csv").exists()
        assert (
            "No space left" in status(site, "one")["failures"][0]
            or "File too large" in status(site, "one")["failures"][0]
        )
        disk.free(daemon.process.pid)
        daemon.wait_for("shipment_resumed", within_seconds=DEADLINE_SECONDS)
        delivered(daemon, "b.csv")
        assert daemon.stop(seconds=DEADLINE_SECONDS) == 0
