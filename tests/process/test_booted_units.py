"""The units under a booted systemd, in a root folder of its own: sandbox, credentials, reload, watchdog, restarts, stop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.convertible_files import xlsx
from tests.support.unit_system import UnitSystem, unit_system

pytestmark = pytest.mark.timeout(300)
ROWS = 20_000
ACKNOWLEDGED = '"event": "partition_acknowledged"'
READY = '"event": "daemon_ready"'


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnitSystem]:
    """Run both units, as `install-units` writes and describes them; instances of the template are added by the tests."""
    folder = tmp_path_factory.mktemp("machine")
    folder.chmod(0o755)
    with unit_system(folder / "root") as booted:
        yield booted


def test_both_units_start_and_deliver_a_large_file_and_a_workbook(units: UnitSystem) -> None:
    for unit in ("ingestd.service", "workspaced.service"):
        assert units.system.show(unit, "ActiveState", "NRestarts") == {"ActiveState": "active", "NRestarts": "0"}
    assert units.system.show("ingestd.service", "StatusText")["StatusText"].startswith("1 pipeline")
    rows = "".join(f"{number:05d},{number}.50\n" for number in range(ROWS))
    units.drop("/srv/ingestd/drop/masses.csv", f"part,mass\n{rows}")
    units.system.wait_for_text("ingestd.service", ACKNOWLEDGED)
    assert units.value("masses", "19999.mass") == "19999.50"
    # A child process with its own limits reads it.
    sheet = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in row) + "</row>"
        for row in (("part", "mass"), ("W-1", "0.10"))
    )
    units.drop("/srv/ingestd/drop/book.xlsx", xlsx({"Masses": sheet}))
    units.system.wait_for_text("ingestd.service", ACKNOWLEDGED)
    assert units.value("masses", "W-1.mass") == "0.10"


def test_root_alone_reads_the_key_and_the_daemon_gets_a_copy(units: UnitSystem) -> None:
    # The daemon of the first test has delivered with the copy.
    refused = units.system.run("cat", "/etc/ingestd/api_key", user="ingestd", accepted=None)
    assert "Permission denied" in refused.stderr
    assert "api_key" in units.system.run("ls", "/run/credentials/ingestd.service").stdout


def test_the_service_converts_an_uploaded_file(units: UnitSystem) -> None:
    file = units.upload("masses.csv", "part,mass\nC-1,0.10\n")
    assert units.conversion(file) == "succeeded"


def test_reload_applies_a_changed_configuration_and_a_broken_one_changes_nothing(units: UnitSystem) -> None:
    unit = units.instance("reload")
    units.system.run("systemctl", "start", unit)
    process = units.main_process(unit)
    units.configure("reload", "other-masses", folder="/srv/ingestd/reload", template="{part}.other")
    units.system.run("systemctl", "reload", unit)
    units.drop("/srv/ingestd/reload/one.csv", "part,mass\nR-1,0.10\n")
    units.system.wait_for_text(unit, ACKNOWLEDGED)
    assert units.value("other-masses", "R-1.other") == "0.10"
    units.write("/etc/ingestd/reload.yaml", "pipelines: 1\n", mode=0o640, group="ingestd")
    refused = units.system.run("systemctl", "reload", unit, accepted=None)
    assert refused.returncode != 0
    units.drop("/srv/ingestd/reload/two.csv", "part,mass\nR-2,0.20\n")
    units.system.wait_for_text(unit, ACKNOWLEDGED)
    assert units.value("other-masses", "R-2.other") == "0.20"
    assert units.system.show(unit, "ActiveState", "MainPID") == {"ActiveState": "active", "MainPID": process}


def test_a_wrong_configuration_ends_with_78_and_is_not_restarted(units: UnitSystem) -> None:
    unit = units.instance("wrong", RestartSec="100ms")
    units.write("/etc/ingestd/wrong.yaml", "pipelines: 1\n", mode=0o640, group="ingestd")
    assert units.system.run("systemctl", "start", unit, accepted=None).returncode != 0
    expected = {"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "78", "NRestarts": "0"}
    assert units.system.show(unit, *expected) == expected


def test_the_watchdog_restarts_a_stuck_daemon_and_its_pending_entries_are_delivered(units: UnitSystem) -> None:
    unit = units.instance("stuck", WatchdogSec="3", RestartSec="100ms")
    units.system.run("systemctl", "start", unit)
    units.system.run("systemctl", "stop", "workspaced")
    expected = {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert units.system.show("workspaced.service", *expected) == expected
    units.drop("/srv/ingestd/stuck/one.csv", "part,mass\nS-1,0.10\n")
    units.system.wait_for_text(unit, '"event": "partition_read"')
    units.system.run("systemctl", "kill", "--kill-whom=main", "--signal=STOP", unit)
    units.system.run("systemctl", "start", "workspaced")
    units.system.wait_for_text(unit, "Watchdog timeout")
    units.system.wait_for_text(unit, READY)
    units.system.wait_for_text(unit, ACKNOWLEDGED)
    assert units.value("stuck", "S-1.mass") == "0.10"
    assert units.system.show(unit, "NRestarts") == {"NRestarts": "1"}


def test_a_killed_daemon_is_restarted_and_delivers_and_a_stopped_one_ends_by_itself(units: UnitSystem) -> None:
    unit = units.instance("killed", RestartSec="100ms")
    units.system.run("systemctl", "start", unit)
    units.system.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
    units.system.wait_for_text(unit, "Main process exited, code=killed, status=9/KILL")
    units.drop("/srv/ingestd/killed/one.csv", "part,mass\nK-1,0.10\n")
    units.system.wait_for_text(unit, READY)
    units.system.wait_for_text(unit, ACKNOWLEDGED)
    assert units.value("killed", "K-1.mass") == "0.10"
    assert units.system.show(unit, "NRestarts") == {"NRestarts": "1"}
    units.system.run("systemctl", "stop", unit)
    # After TimeoutStopSec= the result would be "timeout".
    expected = {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert units.system.show(unit, *expected) == expected
