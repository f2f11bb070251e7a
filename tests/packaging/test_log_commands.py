"""The commands of docs/operations.md that select events of the log, with lines of a log as the journal prints them."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.executed_page import blocks

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
COMMANDS = [
    line for block in blocks(PAGE.read_text(encoding="utf-8"), "sh") for line in block.splitlines() if " | jq " in line
]
EVENTS = [
    {"timestamp": "2026-11-23T05:59:59.999Z", "level": "error", "event": "e", "pipeline": "pdm"},
    {"timestamp": "2026-11-23T06:00:00.000Z", "level": "info", "event": "e", "pipeline": "mass-budget"},
    {"timestamp": "2026-11-23T06:00:00.001Z", "level": "warning", "event": "e"},
    {"timestamp": "2026-11-24T00:00:00.000Z", "level": "info", "event": "e", "pipelines": ["pdm", "mass-budget"]},
]
LINES = [*map(json.dumps, EVENTS), "Fatal Python error: Aborted", "17", '{"timestamp": "2026', ""]


@pytest.mark.parametrize(("place", "selected"), [(" -S ", [0, 2]), (" cat -f ", [1, 3]), ("zcat", [1, 2, 3])])
def test_a_command_selects_events_and_omits_other_lines(tmp_path: Path, place: str, selected: list[int]) -> None:
    (command,) = (line for line in COMMANDS if place in line)
    (tmp_path / "FILE.2.gz").write_bytes(gzip.compress(f"{LINES[0]}\n".encode()))
    (tmp_path / "FILE.1").write_text(f"{LINES[1]}\n", encoding="utf-8")
    (tmp_path / "FILE").write_text("\n".join(LINES[2:]), encoding="utf-8")
    if place != "zcat":
        command = f"cat log |{command.partition('|')[2]}"
        (tmp_path / "log").write_text("\n".join(LINES), encoding="utf-8")
    done = subprocess.run(["/bin/sh", "-ec", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [EVENTS[one] for one in selected]
