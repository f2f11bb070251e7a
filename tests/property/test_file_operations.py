"""After any operations on the files of a folder, the service has exactly the last stable files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon_process import ROOT

ROUNDS = 15
SEED = 20


def play(folder: Path, mounts: str, *before: str) -> set[str]:
    """Run the rounds; return the kinds of operations."""
    command = [
        *before,
        sys.executable,
        "-m",
        "tests.support.file_operations",
        str(folder),
        str(SEED),
        str(ROUNDS),
        mounts,
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    rounds = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(rounds) == ROUNDS
    for played in rounds:
        assert played["held"] == played["wanted"], played["did"]
    assert sum(bool(played["wanted"]) for played in rounds) > ROUNDS // 2
    return {what.split()[0] for played in rounds for what in played["did"]}


def test_any_sequence_of_operations_restarts_and_kills_ends_with_the_last_stable_files(tmp_path: Path) -> None:
    done = play(tmp_path, "plain")
    assert done == {"create", "append", "replace", "truncate", "rename", "delete", "calm", "restart", "killed"}


def test_mounting_and_unmounting_the_share_changes_no_result(tmp_path: Path) -> None:
    probe = "mkdir a b && mount --bind a b && umount b"
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"this account may not mount in a private namespace: {tried.stderr.strip()}")
    assert "unmount" in play(tmp_path, "mount", "unshare", "-m")
