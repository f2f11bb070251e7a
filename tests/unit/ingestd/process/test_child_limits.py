"""Limits of a child process below hard limits that the system sets, such as those of a unit or a container."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

CODE = """
import resource, sys
from ingestd.process.child_limits import limit_process, limit_work
kind, hard = getattr(resource, sys.argv[1]), int(sys.argv[2])
resource.setrlimit(kind, (hard, hard))
limit_process(memory_bytes=2**33, output_bytes=2**40)
for _ in range(2):
    limit_work(memory_bytes=2**33, file_bytes=2**20, cpu_seconds=10**6)
print(*resource.getrlimit(kind))
"""


@pytest.mark.parametrize(
    ("kind", "hard"), [("RLIMIT_AS", 2**32), ("RLIMIT_DATA", 2**32), ("RLIMIT_CPU", 1_000), ("RLIMIT_FSIZE", 2**30)]
)
def test_a_lower_hard_limit_stays(kind: str, hard: int) -> None:
    done = subprocess.run([sys.executable, "-c", CODE, kind, str(hard)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(hard), str(hard)]


def test_without_a_hard_limit_the_limit_can_be_replaced() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, "RLIMIT_NOFILE", "64"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert resource.RLIM_INFINITY == -1
