"""A daemon with an empty state file: its first readings are compared with what the service has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.engineering_folder import Folder, OtherProgram

PARTS = [f"{number:05}" for number in range(417, 441)]


def budget(factor: float = 1, parts: list[str] = PARTS, *, more: int = 0) -> str:
    """Return a mass budget with the masses times a factor, and with ``more`` new parts."""
    rows = [f"{part},{(index + 2) * factor:g}" for index, part in enumerate(parts)]
    return "part,mass\n" + "\n".join([*rows, *(f"new{number},1" for number in range(more))]) + "\n"


def values(factor: float = 1) -> dict[str, str]:
    return {f"{part}.mass": f"{(index + 2) * factor:g}" for index, part in enumerate(PARTS)}


@pytest.fixture
def folder(tmp_path: Path, service: OtherProgram) -> Folder:
    """A folder from which 24 masses were delivered. The run with these masses in grams is held."""
    made = Folder(tmp_path / "here", service)
    made.write(budget())
    assert made.here("sync").returncode == 0
    made.write(budget(1000, more=2))
    assert made.here("sync").returncode == 8
    return made


def forget(folder: Folder) -> None:
    """Delete the state file, as a daemon on another machine has none."""
    shutil.rmtree(folder.path / "var")


def test_a_daemon_with_an_empty_state_holds_the_run_that_its_predecessor_held(
    folder: Folder, service: OtherProgram
) -> None:
    before = folder.held_run()
    forget(folder)
    with folder.daemon("--log-level", "debug") as daemon:
        event = daemon.wait_for("run_held")
        assert daemon.stop() == 0
    assert service.values() == values(), "neither the changed nor the two new entries are delivered"
    after = folder.held_run()
    for member in ("pipeline", "partition", "reasons", "records", "created", "updated", "removed"):
        assert after[member] == before[member]
    assert f"'ingestd approve {after['run']}' delivers it" in event["sentence"]
    assert folder.here("sync").returncode == 8, "it is still held after a restart"
    assert folder.held_run() == after


def test_such_a_run_is_delivered_when_it_is_approved(folder: Folder, service: OtherProgram) -> None:
    forget(folder)
    assert folder.here("sync").returncode == 8
    assert folder.here("approve", str(folder.held_run()["run"])).returncode == 0
    assert folder.here("sync").returncode == 0
    assert service.values() == values(1000) | {"new0.mass": "1", "new1.mass": "1"}


def test_such_a_run_is_ignored_when_it_is_discarded_and_replaced_by_a_corrected_file(
    folder: Folder, service: OtherProgram
) -> None:
    forget(folder)
    assert folder.here("sync").returncode == 8
    assert folder.here("discard", str(folder.held_run()["run"])).returncode == 0
    assert folder.here("sync").returncode == 0
    assert service.values() == values()
    folder.write(budget(25.4))
    assert folder.here("sync").returncode == 8, "a later reading is compared with the entries of the service, too"
    folder.write(budget(1.05, more=1))
    assert folder.here("sync").returncode == 0
    assert service.values() == values(1.05) | {"new0.mass": "1"}


@pytest.mark.parametrize(
    ("guard", "text", "code"),
    [
        ("", budget(1.05), 0),
        ("", budget(1000, PARTS[:12]), 0),
        (", guard: off", budget(1000), 0),
        (", guard: {changed: 50}", budget(1.05), 8),
        (", guard: {minimum: 12}", budget(1000, PARTS[:12]), 8),
    ],
)
def test_the_guard_of_the_pipeline_decides(
    folder: Folder, service: OtherProgram, guard: str, text: str, code: int
) -> None:
    forget(folder)
    configuration = folder.config.read_text(encoding="utf-8")
    folder.config.write_text(configuration.replace("'{mass}'}", f"'{{mass}}'}}{guard}"), encoding="utf-8")
    folder.write(text)
    assert folder.here("sync").returncode == code
    wanted = dict(line.split(",") for line in text.splitlines()[1:])
    delivered = {} if code else {f"{part}.mass": mass for part, mass in wanted.items()}
    assert service.values() == values() | delivered


def test_a_saved_plan_is_no_approval_of_a_first_reading(folder: Folder, service: OtherProgram) -> None:
    forget(folder)
    assert folder.here("plan", "--save", "first.plan").returncode == 0
    assert folder.here("sync", "--plan", "first.plan").returncode == 8
    assert service.values() == values()


def test_readings_while_the_key_is_refused_are_compared_when_it_is_accepted(
    folder: Folder, service: OtherProgram
) -> None:
    forget(folder)
    configuration = folder.config.read_text(encoding="utf-8")
    folder.config.write_text(configuration.replace(service.api_key, "refused"), encoding="utf-8")
    assert folder.here("sync").returncode == 4
    folder.write(budget(1000, more=3))
    assert folder.here("sync").returncode == 4
    folder.config.write_text(configuration, encoding="utf-8")
    assert folder.here("sync").returncode == 8
    assert folder.held_run()["created"] == 3
    assert service.values() == values()


def test_a_first_reading_of_a_later_file_is_compared_too(folder: Folder, service: OtherProgram) -> None:
    forget(folder)
    folder.write(budget(1, PARTS[:4]))
    assert folder.here("sync").returncode == 0
    folder.write(budget(0.001, PARTS), name="other.csv")
    assert folder.here("sync").returncode == 8
    assert service.values() == values()


def test_a_truncated_file_does_not_remove_what_a_lost_state_file_had_written(
    folder: Folder, service: OtherProgram
) -> None:
    configuration = folder.config.read_text(encoding="utf-8")
    source = "{connector: file, path: drop/budget.csv, settle_seconds: 0, deletes: remove}"
    folder.config.write_text(
        configuration.replace("{connector: directory, path: drop, settle_seconds: 0}", source), encoding="utf-8"
    )
    for state in (folder.path / "var").glob("ingestd.db*"):  # the sequence file stays
        state.unlink()
    folder.write(budget(1, PARTS[:12]))
    assert folder.here("sync").returncode == 0
    assert service.values() == values()
    assert "12 that no source explains" in folder.here("status").stdout
    folder.write(budget(1, PARTS[:13]))
    assert folder.here("sync").returncode == 0
    assert len(service.values()) == 13, "less than half is removed, as before"
