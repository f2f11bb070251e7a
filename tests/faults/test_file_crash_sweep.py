"""kill -9 before each file operation with which a settled file is put away, and the same done again after the restart."""

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
from tests.support.file_crash_sweep import CONTENT, OLDER

TEXT, OTHER = CONTENT.decode(), OLDER.decode()


def sweep(how: str, drop: Path, archive: Path) -> list[dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.file_crash_sweep", how, str(drop), str(archive)],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lives = [json.loads(line) for line in run.stdout.splitlines()]
    assert [life["life"] for life in lives] == ["killed"] * (len(lives) - 1) + ["through"]
    return lives


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than ``tmp_path``."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("this machine has no second file system at /dev/shm")
    with tempfile.TemporaryDirectory(dir=memory, prefix="ingestd-test-") as name:
        yield Path(name)


def assert_archived_once(lives: list[dict[str, Any]]) -> None:
    for number, life in enumerate(lives, start=1):
        here, there = life["between"]
        assert TEXT in [*here.values(), *there.values()], f"operation {number}: the file was nowhere"
        assert life["drop"] == {}
        wanted = {"sub/a.csv": OTHER, "sub/a~2.csv": TEXT} if number % 2 else {"sub/a.csv": TEXT}
        assert life["archive"] == wanted, f"operation {number}"


def test_a_file_is_archived_once_whatever_operation_was_the_last(tmp_path: Path) -> None:
    lives = sweep("archive", tmp_path / "drop", tmp_path / "done")
    assert len(lives) > 4
    assert_archived_once(lives)
    for life in lives:
        here, there = life["between"]
        assert [*here.values(), *there.values()].count(TEXT) == 1, "one rename: never twice, never nowhere"


def test_a_file_is_archived_once_on_another_file_system_too(tmp_path: Path, elsewhere: Path) -> None:
    lives = sweep("archive", tmp_path / "drop", elsewhere / "done")
    assert len(lives) > 8
    assert_archived_once(lives)


def test_a_file_is_deleted_whatever_operation_was_the_last(tmp_path: Path) -> None:
    lives = sweep("delete", tmp_path / "drop", tmp_path / "done")
    assert len(lives) > 1
    for life in lives:
        assert life["drop"] == {}
