"""Another account exchanges names while files are read, archived and rejected. ``make race-test`` does it for a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.daemon_process import ROOT

SECONDS = float(os.environ.get("INGESTD_RACE_SECONDS", "3"))


@pytest.mark.timeout(SECONDS + 110)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another account")
def test_another_account_gets_nothing_out_of_the_folder_and_nothing_in() -> None:
    with tempfile.TemporaryDirectory(prefix="ingestd-race-") as name:
        Path(name).chmod(0o755)
        run = subprocess.run(
            [sys.executable, "-m", "tests.support.name_race", name, str(SECONDS)],
            cwd=ROOT, capture_output=True, text=True, timeout=SECONDS + 100, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    print(report)  # noqa: T201 - for `make race-test`
    assert report["escaped"] == []
    for what in ("read", "acknowledged", "rejected"):
        assert report["done"].get(what), f"nothing was {what}: {report}"
