"""`ingestd drift`: changes by others are found, repaired or adopted, with both kinds of service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.document_server import Delay, DocumentServer
from tests.support.engineering_folder import (
    Folder,
    OtherProgram,
    program_beside_document_server,
    program_beside_workspaced,
)
from tests.support.golden_texts import check_command_output

BUDGET = "part,mass\n00417,0.10\n00418,2\n00419,1e-7\n"
DELIVERED = {"00417.mass": "0.10", "00418.mass": "2", "00419.mass": "1e-7"}


@pytest.fixture
def workspaced(tmp_path: Path) -> Iterator[OtherProgram]:
    with program_beside_workspaced(tmp_path / "data") as program:
        yield program


def change_entries(service: OtherProgram) -> None:
    service.change("00417.mass", "0.11")
    service.remove("00418.mass")
    service.add("note by Ada", "9")


def test_drift_is_reported_and_repaired_by_the_running_daemon(tmp_path: Path, workspaced: OtherProgram) -> None:
    service = workspaced
    folder = Folder(tmp_path / "here", service)
    folder.write(BUDGET)
    with folder.daemon("--log-level", "debug") as daemon:
        daemon.wait_for("partition_acknowledged")
        none = folder.here("drift")
        assert (none.returncode, none.stdout) == (0, "Budget in Bench: 3 entries, as delivered.\n")
        change_entries(service)
        found = folder.here("drift", "budget")
        assert found.returncode == 6
        # The account of the other program has this name in the service.
        check_command_output("drift", found.stdout.replace("svc:test", "tester"))
        traced = folder.here("trace", "00417.mass").stdout.replace("svc:test", "tester")
        assert re.search(
            r"^  service   = 0\.11 \(scalar\), changed by tester \d.* UTC; known since \d", traced, re.MULTILINE
        )
        assert "  service   no entry, removed by others; known since 20" in folder.here("trace", "00418.mass").stdout
        assert "  service " not in folder.here("trace", "00419.mass").stdout
        assert (
            "note by Ada was written by another program; no source names it"
            in folder.here("trace", "note by Ada").stdout
        )
        (shown,) = json.loads(folder.here("trace", "00417.mass", "--json").stdout)
        assert (shown["value"], shown["service"]["found"], shown["service"]["what"]) == ("0.10", "0.11", "changed")
        assert abs(shown["service"]["changed_at"] - shown["service"]["since"]) < 600
        assert "pipeline budget: attention (3 keys changed by others); last run" in folder.here("status").stdout
        assert service.values() == {"00417.mass": "0.11", "00419.mass": "1e-7", "note by Ada": "9"}, (
            "a report is only that"
        )
        delivered = sum(event["event"] == "entries_delivered" for event in daemon.events)
        repaired = folder.here("drift", "--repair", "--json")
        assert repaired.returncode == 6
        findings = [json.loads(line) for line in repaired.stdout.splitlines()]
        actions = {one["key"]: one["reaction"] for one in findings}
        assert actions == {"00417.mass": "sent again", "00418.mass": "sent again", "note by Ada": ""}
        assert daemon.wait_for("drift_repaired")["entries"] == 2
        daemon.wait_for("entries_delivered", nth=delivered + 1)
        while folder.here("status").stdout.splitlines()[1] != "0 pending, 0 rejected.":
            delivered += 1
            daemon.wait_for("entries_delivered", nth=delivered + 1)
        assert service.values() == {**DELIVERED, "note by Ada": "9"}, "entries that others added are kept"
        assert "  service " not in folder.here("trace", "00417.mass").stdout, "it was sent again"
        assert daemon.stop() == 0


def test_without_a_daemon_the_command_checks_and_repairs_itself(tmp_path: Path, service: OtherProgram) -> None:
    folder = Folder(tmp_path / "here", service)
    folder.write(BUDGET)
    assert folder.here("sync").returncode == 0
    change_entries(service)
    repaired = folder.here("drift", "--repair")
    assert repaired.returncode == 6
    check_command_output("drift-repair", repaired.stdout)
    assert service.values() == {**DELIVERED, "note by Ada": "9"}
    status = folder.here("status").stdout
    assert "; read back 20" in status
    assert "1 added, 1 changed, 1 removed by others" in status


def test_a_scheduled_check_repairs_and_removes_as_configured(tmp_path: Path, service: OtherProgram) -> None:
    folder = Folder(tmp_path, service, pipeline=", drift: {mode: repair, every: 1s, added: remove}")
    folder.write(BUDGET)
    with folder.daemon("--log-level", "debug") as daemon:
        daemon.wait_for("sink_as_delivered", entries=3)
        change_entries(service)
        daemon.wait_for("drift_repaired")
        clean = sum(event["event"] == "sink_as_delivered" for event in daemon.events)
        daemon.wait_for("sink_as_delivered", nth=clean + 1, entries=3)
        assert daemon.stop() == 0
    assert service.values() == DELIVERED


def test_an_adopted_value_stays_until_the_source_changes(tmp_path: Path, service: OtherProgram) -> None:
    folder = Folder(tmp_path, service, pipeline=", drift: adopt")
    folder.write(BUDGET)
    assert folder.here("sync").returncode == 0
    change_entries(service)
    adopted = folder.here("drift", "--adopt")
    assert adopted.returncode == 6
    assert "; 3 adopted." in adopted.stdout
    assert folder.here("drift").returncode == 0
    assert "= 0.11 (scalar)" in folder.here("trace", "00417.mass").stdout
    folder.write(BUDGET.replace("1e-7", "2e-7"))
    assert folder.here("sync").returncode == 0
    assert service.values() == {"00417.mass": "0.11", "00419.mass": "2e-7", "note by Ada": "9"}


def test_an_unreadable_sink_is_reported_and_earlier_findings_are_kept(tmp_path: Path) -> None:
    with program_beside_document_server() as service:
        folder = Folder(tmp_path, service)
        folder.write(BUDGET)
        assert folder.here("sync").returncode == 0
        change_entries(service)
        assert folder.here("drift").returncode == 6
    away = folder.here("drift")
    assert away.returncode == 7
    assert "Budget in Bench: not compared. Nothing listens at the service's address." in away.stdout
    assert "00417.mass changed by tester 20" in away.stdout, "by the last completed reading"
    assert "Nothing listens" in folder.here("status").stdout


@pytest.mark.parametrize(
    ("kind", "command"),
    [("service", "sync"), ("service", "drift"), ("workspaced", "drift --repair")],
)
def test_a_deleted_sink_is_created_again_by_a_check(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, command: str
) -> None:
    service: OtherProgram = request.getfixturevalue(kind)
    folder = Folder(tmp_path / "here", service)
    folder.write(BUDGET)
    assert folder.here("sync").returncode == 0
    service.remove_sink()
    run = folder.here(*command.split())
    if command != "sync":
        assert run.returncode == 6
        when = "now" if "--repair" in command else "by the next run or sync"
        assert (
            run.stdout
            == f"Budget in Bench: the service no longer has this sink. It is created again with all its entries {when}.\n"
        )
    if command == "drift":
        assert folder.here("status").stdout.splitlines()[1] == "3 pending, 0 rejected."
        assert folder.here("sync").returncode == 0
    assert service.values() == DELIVERED
    assert folder.here("drift").returncode == 0


def test_the_daemon_creates_a_deleted_sink_at_a_scheduled_check_and_at_its_start(
    tmp_path: Path, service: OtherProgram
) -> None:
    folder = Folder(tmp_path, service, pipeline=", drift: {every: 1s}")
    folder.write(BUDGET)
    with folder.daemon("--log-level", "debug") as daemon:
        daemon.wait_for("sink_as_delivered", entries=3)
        service.remove_sink()
        daemon.wait_for("sink_created", nth=2, entries=3)
        assert daemon.stop() == 0
    service.remove_sink()
    with folder.daemon("--log-level", "debug") as daemon:
        daemon.wait_for("sink_created", entries=3)
        assert daemon.stop() == 0
    assert service.values() == DELIVERED


def test_a_daemon_fills_the_workspace_of_a_service_with_a_new_database_although_nothing_is_pending(
    tmp_path: Path, workspaced: OtherProgram
) -> None:
    folder = Folder(tmp_path, workspaced)
    folder.write(BUDGET)
    assert folder.here("sync").returncode == 0
    workspaced.replace_workspace()  # with the label of the former one
    with folder.daemon("--log-level", "debug") as daemon:
        daemon.wait_for("sink_created", entries=3)
        assert daemon.stop() == 0
    assert workspaced.values() == DELIVERED


def test_a_sink_without_deliveries_has_no_drift(tmp_path: Path, service: OtherProgram) -> None:
    folder = Folder(tmp_path, service)
    assert folder.here("sync").returncode == 0
    run = folder.here("drift")
    assert (run.returncode, run.stdout) == (0, "Budget in Bench: nothing has been delivered to it yet.\n")
    assert folder.here("drift", "bugdet").returncode == 2
    assert folder.here("drift", "--repair", "--adopt").returncode == 2


def test_a_check_that_is_interrupted_by_the_end_of_the_daemon_is_reported(
    tmp_path: Path, server: DocumentServer
) -> None:
    folder = Folder(tmp_path, server)
    folder.write(BUDGET)
    with folder.daemon() as daemon:
        daemon.wait_for("partition_acknowledged")
        reads = len(server.requests)
        server.fail(Delay(seconds=600), when=lambda request: not request.writes)
        with folder.start("drift") as command:
            while len(server.requests) == reads:
                server.arrived.clear()
                assert len(server.requests) > reads or server.arrived.wait(30)
            assert daemon.stop() == 0
            output, errors = command.communicate(timeout=30)
    assert (command.returncode, output) == (75, "")
    assert errors.startswith("The daemon is stopping")
    assert folder.here("drift", "--json").returncode in {0, 7}, "the state file is unlocked and undamaged"
