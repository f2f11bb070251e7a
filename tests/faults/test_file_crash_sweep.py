"""kill -9 before each file operation that archives a stable file. The restarted daemon repeats the operation."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import ROOT
from tests.support.file_crash_sweep import CONTENT, OLDER, SHA256

TEXT, OTHER = CONTENT.decode(), OLDER.decode()


Runs = list[dict[str, Any]]
HOW = ("archive", "delete", "with-receipt", "unreadable")


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Runs]]:
    """Return the runs of each sweep: archives on the folder's file system, and on another. One process does them all."""
    base, memory = tmp_path_factory.mktemp("sweeps"), Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == base.stat().st_dev:
        pytest.skip("this machine has no second file system at /dev/shm")
    with tempfile.TemporaryDirectory(dir=memory, prefix="ingestd-test-") as name:
        places = {(how, where): (base / how / where, root / how) for how in HOW
                  for where, root in (("here", base / "done"), ("elsewhere", Path(name)))}  # fmt: skip
        run = subprocess.run(
            [sys.executable, "-m", "tests.support.file_crash_sweep"]
            + [word for (how, _), (drop, archive) in places.items() for word in (how, str(drop), str(archive))],
            cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        yield dict(zip(places, map(json.loads, run.stdout.splitlines()), strict=True))


def assert_swept(runs: Runs, least: int) -> None:
    assert [one["outcome"] for one in runs] == ["killed"] * (len(runs) - 1) + ["through"]
    assert len(runs) > least


def assert_archived_once(runs: Runs) -> None:
    for number, run in enumerate(runs, start=1):
        here, there = run["between"]
        assert TEXT in [*here.values(), *there.values()], f"operation {number}: the file does not exist"
        assert run["drop"] == {}
        wanted = {"sub/a.csv": OTHER, "sub/a~2.csv": TEXT} if number % 2 else {"sub/a.csv": TEXT}
        found = {name: text for name, text in run["archive"].items() if not name.startswith("failed/")}
        assert found == wanted, f"operation {number}"


@pytest.mark.parametrize(("where", "least"), [("here", 2), ("elsewhere", 6)])
def test_a_file_is_archived_once_after_a_crash_at_any_operation(
    sweeps: dict[tuple[str, str], Runs], where: str, least: int
) -> None:
    runs = sweeps["archive", where]
    assert_swept(runs, least)
    assert_archived_once(runs)
    for run in runs if where == "here" else ():
        here, there = run["between"]
        assert [*here.values(), *there.values()].count(TEXT) == 1, "one rename: the file exists exactly once"


def test_a_file_is_deleted_after_a_crash_at_any_operation(sweeps: dict[tuple[str, str], Runs]) -> None:
    assert_swept(sweeps["delete", "here"], 1)
    for run in sweeps["delete", "here"]:
        assert run["drop"] == {}


ROWS = "rejected/sub/a.csv.rejected.csv"


def assert_archived_with_receipt_once(runs: Runs) -> None:
    for number, run in enumerate(runs, start=1):
        here, there = run["between"]
        assert TEXT in [*here.values(), *there.values()], f"operation {number}: the file does not exist"
        if not here:
            assert receipt_of(there), f"operation {number}: the file is gone, and its result was not reported"
        assert run["drop"] == {}
        found = {name: text for name, text in run["archive"].items() if not name.startswith("failed/")}
        reported = receipt_of(found)
        name = "sub/a~2.csv" if number % 2 else "sub/a.csv"
        others = {"sub/a.csv"} if number % 2 else set()
        assert found.keys() == {name, f"{name}.receipt.json", ROWS} | others, f"operation {number}"
        assert found[name] == TEXT
        assert f"/{name}. The rejected rows are in " in reported["summary"]
        assert (reported["sha256"], reported["rejected"]["count"]) == (SHA256, 1)
        header, row = found[ROWS].splitlines()
        assert header.startswith("part,mass,_reason,")
        assert row.startswith(",7,It is empty.,3,part,1-00aa/")


def receipt_of(files: dict[str, str]) -> dict[str, Any]:
    (text,) = [text for name, text in files.items() if name.endswith(".receipt.json")]
    reported: dict[str, Any] = json.loads(text)
    return reported


@pytest.mark.parametrize(("where", "least"), [("here", 10), ("elsewhere", 14)])
def test_receipt_and_rejected_rows_exist_once_after_a_crash_at_any_operation(
    sweeps: dict[tuple[str, str], Runs], where: str, least: int
) -> None:
    assert_swept(sweeps["with-receipt", where], least)
    assert_archived_with_receipt_once(sweeps["with-receipt", where])


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_an_unreadable_file_is_never_moved_without_its_reason(sweeps: dict[tuple[str, str], Runs], where: str) -> None:
    runs = sweeps["unreadable", where]
    assert_swept(runs, 4)
    for number, run in enumerate(runs, start=1):
        here, there = run["between"]
        if not here:
            assert any(name.endswith(".reason.txt") for name in there), f"operation {number}"
        name = "failed/sub/a~2.csv" if number % 2 else "failed/sub/a.csv"
        found = {path: text for path, text in run["archive"].items() if text != OTHER}
        assert found.keys() == {name, f"{name}.reason.txt"}, f"operation {number}"
        assert found[name] == TEXT
        assert "It has no header." in found[f"{name}.reason.txt"]
        assert run["drop"] == {}
