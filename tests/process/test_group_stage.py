"""The group stage as a process: its memory, and what a killed one leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CHILD = r"""
import re, sys
from pathlib import Path
import polars as pl
from ingestd.core.groups import AggregateSpec, Aggregation, GroupSpec
from ingestd.core.record import Batch
from ingestd.intake.group_stage import GroupStage

folder, count, groups = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
take = {"mean": AggregateSpec(function="mean", field="kg"), "last": AggregateSpec(function="last", field="kg", order="at")}
with GroupStage(Aggregation(GroupSpec(by=("part",), take=tuple(take.items()))), folder) as stage:
    for start in range(0, count, 20_000):
        numbers = pl.int_range(start, start + 20_000, eager=True)
        text = numbers.cast(pl.String)
        records = pl.DataFrame({"part": "part-" + ((numbers * 7919) % groups).cast(pl.String), "kg": text + ".25", "at": text})
        batch = Batch(records=records, positions=numbers, cursor={})
        stage.add(batch)
    if sys.argv[4:]:
        print("written", flush=True)
        sys.stdin.read()
    found = sum(one.records.height for one in stage.batches(batch))
# Not ru_maxrss: that of a new program begins with the memory of the process that started it.
peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
print(found, int(peak[1]) // 1024)
"""


def child(folder: Path, count: int, groups: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(folder), str(count), str(groups), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "POLARS_MAX_THREADS": "2"},
    )


def test_a_million_groups_and_one_large_group_need_less_than_300_mb(tmp_path: Path) -> None:
    for groups in (1_000_000, 1):
        output, _ = child(tmp_path, 1_000_000, groups).communicate()
        found, megabytes = map(int, output.split())
        assert found == groups
        assert megabytes < 300


def test_the_temporary_file_has_no_name_so_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    with child(tmp_path, 200_000, 200_000, "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        opened = [str(one.readlink()) for one in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert [one for one in opened if one.startswith(str(tmp_path))], "it has written to the folder"
        assert list(tmp_path.iterdir()) == []
        process.send_signal(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []
