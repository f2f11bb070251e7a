"""`ingestd rollback`: the values before a run return, and the same content is not delivered again."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.process.test_cli_guard import budget, values
from tests.process.test_cli_json import documented
from tests.support.daemon_process import here
from tests.support.engineering_folder import Folder, OtherProgram, timeless
from tests.support.golden_texts import check_command_output

PAGE = Path(__file__).parents[2] / "docs" / "rollback.md"
BEFORE = "2000-01-01 00:00"


@pytest.fixture
def folder(tmp_path: Path, service: OtherProgram) -> Folder:
    """A folder from which twelve masses were delivered, first in kilograms, then in grams."""
    made = Folder(tmp_path / "here", service, pipeline=", guard: off")
    for factor in (1, 1000):
        made.write(budget(factor))
        assert made.here("sync").returncode == 0
    return made


def last_run(folder: Folder) -> int:
    (found,) = json.loads(folder.here("status", "--json").stdout)["pipelines"]
    number: int = found["last_run"]["id"]
    return number


def test_a_run_is_rolled_back_without_a_daemon(folder: Folder, service: OtherProgram) -> None:
    run = last_run(folder)
    service.change("00419.mass", "corrected by a person")
    plan = folder.here("rollback", str(run), "--dry-run")
    assert plan.returncode == 0
    check_command_output("rollback-plan", plan.stdout)
    assert timeless(plan.stdout) in timeless(PAGE.read_text(encoding="utf-8"))
    assert service.values()["00418.mass"] == "3000", "a plan changes nothing"
    found = json.loads(folder.here("rollback", str(run), "--json").stdout)
    assert (found["is_plan"], found["restored"], found["left_count"]) == (True, 11, 1)
    assert set(found) == documented()["rollback"][1]
    done = folder.here("rollback", str(run), "--yes")
    assert (
        done.stdout
        == plan.stdout + "Rolled back: 11 restored, 0 removed, 0 created; 1 left. The next run or sync sends them.\n"
    )
    assert folder.here("sync").returncode == 8, "the run is held"
    expected = values() | {"00419.mass": "corrected by a person"}
    assert service.values() == expected
    assert f"run {run} of budget.csv (pipeline budget) is held since" in folder.here("status").stdout
    assert "rolled it back" in folder.here("why", "budget.csv").stdout
    assert re.search(r"2000 \(scalar\), rolled back \d", folder.here("trace", "00417.mass").stdout)
    assert folder.here("approve", str(run)).returncode == 0
    assert folder.here("sync").returncode == 0
    assert service.values() == values(1000) | {"00419.mass": "corrected by a person"}


def test_the_reason_of_a_later_reading_comes_before_the_hold(folder: Folder) -> None:
    assert folder.here("rollback", str(last_run(folder)), "--yes").returncode == 0
    folder.write(budget(1).replace("mass", "weight", 1))
    assert folder.here("sync").returncode == 8
    why = folder.here("why", "budget.csv").stdout
    assert why.startswith("budget.csv could not be read ")
    assert " Before that, run 2 of budget.csv (pipeline budget) is held since " in why
    folder.write(budget(1000))
    assert folder.here("sync").returncode == 8
    assert folder.here("why", "budget.csv").stdout.startswith("run 2 of budget.csv (pipeline budget) is held since ")
    assert "\npipeline budget: held (1 held run); " in folder.here("status").stdout, "the file is not rejected any more"


def test_a_corrected_file_is_delivered_after_a_rollback_by_time(folder: Folder, service: OtherProgram) -> None:
    since = datetime.fromtimestamp(0, UTC).isoformat()
    assert (
        folder.here("rollback", "--since", since, "--pipeline", "budget", "--sink", "Budget", "--yes").returncode == 0
    )
    assert folder.here("sync").returncode == 8
    assert service.values() == {}, "the first run of the time created all entries"
    folder.write(budget(2))
    assert folder.here("sync").returncode == 0
    assert service.values() == values(2)
    assert json.loads(folder.here("status", "--json").stdout)["held"] == []


def test_a_rollback_names_only_a_run_that_can_be_approved(folder: Folder) -> None:
    run = last_run(folder)
    first = folder.here("rollback", str(run - 1), "--yes").stdout
    assert "Left as they are:" in first
    assert "is held" not in first, "nothing of it was restored"
    assert (
        f"until it changes or 'ingestd approve {run}' delivers it." in folder.here("rollback", str(run), "--yes").stdout
    )
    folder.write(budget(2))
    assert folder.here("sync").returncode == 0
    folder.write(budget(3))
    assert folder.here("sync").returncode == 0
    later = last_run(folder)
    assert folder.here("rollback", str(later), "--yes").returncode == 0
    done = folder.here("rollback", str(later - 1), "--yes").stdout
    assert f"until it changes or 'ingestd approve {later}' delivers it." in done
    approved = folder.here("approve", str(later))
    assert (approved.returncode, "entries: 0 created, 12 updated, 0 removed" in approved.stdout) == (0, True)


def test_a_running_daemon_restores_at_once(folder: Folder, service: OtherProgram) -> None:
    run = last_run(folder)
    with folder.daemon("--log-level", "debug") as daemon:
        done = folder.here("rollback", str(run), "--yes")
        assert done.stdout.endswith(
            "Rolled back: 12 restored, 0 removed, 0 created; 0 left. The daemon sends them now.\n"
        )
        event = daemon.wait_for("runs_rolled_back")
        assert (event["restored"], event["chosen"]) == (12, f"run {run}")
        daemon.wait_for("entries_delivered")
        assert service.values() == values()
        folder.write(budget(3))
        daemon.wait_for("run_released", decision="replaced")
        daemon.wait_for("partition_acknowledged")
        assert service.values() == values(3)
        assert daemon.stop() == 0


def test_the_hold_and_the_event_of_a_rollback_have_their_times_in_utc(folder: Folder) -> None:
    with folder.daemon() as daemon:
        done = here(folder.path, "rollback", "--since", "2000-01-01", "--yes", TZ="Europe/Berlin")
        assert re.search(r" CES?T; entries: ", done.stdout), "what a person reads is in the zone of the account"
        assert daemon.wait_for("runs_rolled_back")["chosen"] == "runs since 1999-12-31 23:00:00 UTC"
        (held,) = json.loads(folder.here("status", "--json").stdout)["held"]
        assert re.search(r" rolled it back \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.$", held["reasons"][0])
        assert daemon.stop() == 0


def test_a_log_is_rolled_back_but_not_held(folder: Folder, service: OtherProgram) -> None:
    text = folder.config.read_text(encoding="utf-8")
    source = "{connector: directory, path: drop, settle_seconds: 0}"
    assert source in text
    folder.config.write_text(
        text.replace(source, "{connector: log, path: drop, format: csv}").replace(", guard: off", ""), encoding="utf-8"
    )
    assert folder.here("sync").returncode == 0
    with (folder.drop / "budget.csv").open("a", encoding="utf-8") as file:
        file.write("00500,7\n00417,8\n")
    assert folder.here("sync").returncode == 0
    assert service.values()["00500.mass"] == "7"
    done = folder.here("rollback", str(last_run(folder)), "--yes")
    assert "is not held: its source yields only new records" in done.stdout
    assert folder.here("sync").returncode == 0
    assert service.values() == values(1000)


def test_what_cannot_be_rolled_back_is_refused(folder: Folder) -> None:
    assert folder.here("rollback", "99", "--yes").stderr == (
        "There is no run 99. The page of a pipeline and the log name the runs; old runs are deleted.\n"
    )
    for words, sentence in (
        ((), "Name a run or use --since TIME."),
        (("1", "--since", BEFORE), "Name a run or use --since TIME."),
        (("--since", "yesterday"), "Write a time as '2026-11-26 08:00'"),
        (("--since", "0001-01-01"), "'0001-01-01' is no time of a run. Write a time from 1970 to 9998."),
        (("--since", "9999-12-31T23:00-14:00"), "is no time of a run"),
        (("--since", BEFORE, "--pipeline", "bugdet"), "bugdet"),
        (("--since", BEFORE, "--sink", "None"), "No pipeline has written a data sink 'None'."),
    ):
        refused = folder.here("rollback", *words)
        assert refused.returncode != 0
        assert sentence in refused.stderr
    none = folder.here("rollback", "--since", "2100-01-01")
    assert (none.returncode, none.stdout) == (0, "No run of this time has changed an entry.\n")
    asked = folder.here("rollback", str(last_run(folder)))
    assert asked.returncode == 1, "without a confirmation nothing is restored"
    assert "Restore these values?" in asked.stderr


def test_a_service_that_cannot_be_read_is_reported(folder: Folder) -> None:
    text = folder.config.read_text(encoding="utf-8")
    folder.config.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", text), encoding="utf-8")
    plan = folder.here("rollback", "--since", BEFORE, "--dry-run")
    assert plan.returncode == 0
    assert (
        "Not compared with the service, so changes by other programs may be overwritten: Budget in Bench: "
        in plan.stdout
    )
