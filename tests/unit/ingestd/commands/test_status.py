from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestd.commands.status import holder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "s.db.lock").write_text("4711\n")
    return tmp_path / "s.db"


def table(tmp_path: Path, line: str) -> Path:
    path = tmp_path / "locks"
    path.write_text(
        f"1: POSIX  ADVISORY  WRITE 1 08:01:5 0 EOF\n{line}\n2: -> FLOCK  ADVISORY  WRITE 1 08:01:5 0 EOF\n"
    )
    return path


def place(state: Path) -> tuple[str, int]:
    facts = state.with_name("s.db.lock").stat()
    return f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}", facts.st_ino


def test_the_lock_on_the_lock_file_identifies_the_holder(tmp_path: Path, state: Path) -> None:
    device, inode = place(state)
    locks = table(tmp_path, f"7: FLOCK  ADVISORY  WRITE 4711 {device}:{inode} 0 EOF")
    assert holder(state, locks=locks) == 4711


def test_a_holder_in_another_pid_namespace_is_reported_with_its_own_pid(tmp_path: Path, state: Path) -> None:
    device, inode = place(state)
    assert holder(state, locks=table(tmp_path, f"7: FLOCK  ADVISORY  WRITE 0 {device}:{inode} 0 EOF")) == 4711


def test_a_file_system_with_two_device_numbers_is_matched_by_the_pid(tmp_path: Path, state: Path) -> None:
    _, inode = place(state)
    assert holder(state, locks=table(tmp_path, f"7: FLOCK  ADVISORY  WRITE 4711 00:99:{inode} 0 EOF")) == 4711
    assert holder(state, locks=table(tmp_path, f"7: FLOCK  ADVISORY  WRITE 4712 00:99:{inode} 0 EOF")) is None


@pytest.mark.parametrize("line", ["", "7: POSIX  ADVISORY  WRITE 4711 {device}:{inode} 0 EOF", "7: FLOCK"])
def test_without_a_lock_no_daemon_runs_whatever_the_file_contains(tmp_path: Path, state: Path, line: str) -> None:
    device, inode = place(state)
    assert holder(state, locks=table(tmp_path, line.format(device=device, inode=inode))) is None


def test_without_a_lock_file_or_a_lock_table_no_daemon_runs(tmp_path: Path, state: Path) -> None:
    assert holder(tmp_path / "other.db") is None
    assert holder(state, locks=tmp_path / "no-such-table") is None
