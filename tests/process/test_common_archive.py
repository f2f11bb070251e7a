"""Several daemons with a common archive and files of equal names: every original is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon_process import ROOT

FILES = 150
DAEMONS = 2


@pytest.mark.parametrize("receipt", ["receipt", "none"])
def test_no_original_is_lost_if_two_daemons_archive_equal_names(tmp_path: Path, receipt: str) -> None:
    wanted = set()
    for number in range(DAEMONS):
        (tmp_path / f"drop{number}").mkdir()
        for file in range(FILES):
            text = f"part,mass\nP{number},{file}\n"
            (tmp_path / f"drop{number}" / f"run{file // 10}.{file % 10}.csv").write_text(text)
            wanted.add(text)
    daemons = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.common_archive", str(tmp_path), f"drop{number}", receipt],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(DAEMONS)
    ]  # fmt: skip
    for daemon in daemons:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "read\n"
    for daemon in daemons:
        assert daemon.stdin is not None
        daemon.stdin.write("go\n")
        daemon.stdin.flush()
    outputs = [daemon.communicate(timeout=100)[0] for daemon in daemons]
    assert outputs == ["[]\n"] * DAEMONS
    done = tmp_path / "done"
    found = {path.name: path.read_text() for path in done.iterdir() if path.suffix == ".csv"}
    assert len(found) == DAEMONS * FILES
    assert set(found.values()) == wanted
    assert [path for number in range(DAEMONS) for path in (tmp_path / f"drop{number}").iterdir()] == []
    others = {path.name for path in done.iterdir()} - found.keys()
    assert others == ({f"{name}.receipt.json" for name in found} if receipt == "receipt" else set())
    for name in others:
        archived = name.removesuffix(".receipt.json")
        summary = json.loads((done / name).read_text())
        assert f"It is archived as done/{archived}." in summary["summary"]
