"""`ingestd approve` and `ingestd discard`: a run beyond the limits of the guard waits for an operator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.engineering_folder import Folder, OtherProgram
from tests.support.golden_texts import check_command_output

PARTS = [f"{number:05}" for number in range(417, 429)]
GUARD = ", guard: {changed: 30, minimum: 3}"


def budget(factor: int = 1, first: int = 0) -> str:
    """Return a mass budget; the masses from the part ``first`` on are multiplied."""
    rows = [f"{part},{(index + 2) * (factor if index >= first else 1)}" for index, part in enumerate(PARTS)]
    return "part,mass\n" + "\n".join(rows) + "\n"


def values(factor: int = 1) -> dict[str, str]:
    return {f"{part}.mass": str((index + 2) * factor) for index, part in enumerate(PARTS)}


@pytest.fixture
def folder(tmp_path: Path, service: OtherProgram) -> Folder:
    """A folder from which twelve masses were delivered, and in which they are now in grams."""
    made = Folder(tmp_path / "here", service, pipeline=GUARD, after=", after: archive, archive: done")
    made.write(budget())
    assert made.here("sync").returncode == 0
    made.write(budget(1000))
    return made


def test_a_held_run_is_shown_and_approved_without_a_daemon(folder: Folder, service: OtherProgram) -> None:
    sync = folder.here("sync")
    assert sync.returncode == 8
    assert service.values() == values()
    assert (folder.drop / "budget.csv").exists(), "the file of a held run is not archived"
    why = folder.here("why", "budget.csv").stdout
    check_command_output("guard-why", why)
    assert sync.stderr.endswith(why)
    assert "is held since" in folder.here("status").stdout
    assert "skipped budget · held: run" in folder.here("check", "--offline").stdout
    number = folder.held_run()["run"]
    assert folder.here("sync").returncode == 8
    assert folder.held_run()["run"] == number, "the same content is not held again under another number"
    approved = folder.here("approve", str(number))
    assert approved.returncode == 0
    check_command_output("guard-approve", approved.stdout)
    assert folder.here("sync").returncode == 0
    assert service.values() == values(1000)
    assert not (folder.drop / "budget.csv").exists()
    again = folder.here("approve", str(number))
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"Run {number} is not held. 'ingestd status' lists the held runs.\n"


def test_a_discarded_file_is_ignored_until_it_changes(folder: Folder, service: OtherProgram) -> None:
    folder.here("sync")
    discarded = folder.here("discard", str(folder.held_run()["run"]))
    assert discarded.returncode == 0
    check_command_output("guard-discard", discarded.stdout)
    assert folder.here("sync").returncode == 0
    assert service.values() == values()
    assert (folder.drop / "budget.csv").exists()
    folder.write(budget(2, first=10))
    assert folder.here("sync").returncode == 0
    assert service.values()["00428.mass"] == "26"


def test_an_approval_of_a_replaced_run_names_the_later_one(folder: Folder, service: OtherProgram) -> None:
    folder.here("sync")
    first = folder.held_run()["run"]
    folder.write(budget(25, first=1))
    assert folder.here("sync").returncode == 8
    later = folder.held_run()["run"]
    refused = folder.here("approve", str(first))
    assert refused.returncode == 1
    assert f"run {later} replaced it" in refused.stderr
    folder.write(budget())
    assert folder.here("sync").returncode == 0, "the corrected file ends the hold"
    assert json.loads(folder.here("status", "--json").stdout)["held"] == []
    assert service.values() == values()


def test_a_running_daemon_delivers_an_approved_run(folder: Folder, service: OtherProgram) -> None:
    with folder.daemon("--log-level", "debug") as daemon:
        held = daemon.wait_for("run_held")
        assert service.values() == values()
        approved = folder.here("approve", str(held["run"]))
        assert approved.stdout.endswith("12 updated, 0 removed. The daemon sends them now.\n")
        daemon.wait_for("partition_acknowledged")
        assert service.values() == values(1000)
        assert daemon.stop() == 0


def test_a_guard_of_an_incremental_source_is_refused(folder: Folder) -> None:
    text = folder.config.read_text(encoding="utf-8")
    source = "{connector: directory, path: drop, settle_seconds: 0, after: archive, archive: done}"
    assert source in text
    folder.config.write_text(text.replace(source, "{connector: log, path: drop}"), encoding="utf-8")
    refused = folder.here("check", "--configuration-only")
    assert refused.returncode == 78
    assert "A guard compares whole readings, but this source is read incrementally." in refused.stderr
