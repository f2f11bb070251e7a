"""`ingestd demo`, as a new user runs it: real daemons, a real drop folder, everything removed afterwards."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from ingestd.commands.demo.samples import SAMPLES, drop
from tests.support.daemon_process import ROOT

COMMAND = [sys.executable, "-m", "ingestd", "demo"]


def environment(tmp_path: Path, **extra: str) -> dict[str, str]:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return {**os.environ, "TMPDIR": str(folder), **extra}


def left_behind(tmp_path: Path) -> list[str]:
    """Return files in the temporary folder, and processes that were started for it."""
    folder = str(tmp_path / "tmp")
    processes = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if any(folder in word for word in command):
            processes.append(" ".join(command))
    return [*(path.name for path in Path(folder).iterdir()), *processes]


def run(tmp_path: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        COMMAND, cwd=ROOT, env=environment(tmp_path, **extra), capture_output=True, text=True, timeout=100, check=False
    )


def test_without_a_terminal_it_prints_every_arrival_and_the_two_changes_and_ends_with_the_sum(tmp_path: Path) -> None:
    demo = run(tmp_path)
    assert (demo.returncode, demo.stderr) == (0, "")
    for sample in SAMPLES:
        entries = len(sample.entries(sample.text))
        assert re.search(rf"{re.escape(sample.file)} +{entries} entries visible after +\d+ ms\n", demo.stdout)
    assert re.search(r"pdm\.db .* 96 entries visible after +\d+ ms\n", demo.stdout)
    changed, last = demo.stdout.split("Two cells of mass-budget.csv changed: ")[1].splitlines()[1:]
    assert re.fullmatch(r"  mass-budget\.csv +2 entries visible after +\d+ ms", changed)
    assert last == "1 058 entries delivered"
    assert left_behind(tmp_path) == []


class Screen:
    """The content of a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.text = ""

    def wait_for(self, pattern: str, seconds: float = 60.0) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while (found := re.search(pattern, self.text)) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} is not on the screen:\n{self.text}"
            if select.select([self._descriptor], [], [], left)[0]:
                self.text += os.read(self._descriptor, 65_536).decode().replace("\r\n", "\n")
        return found


@contextmanager
def on_a_terminal(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Screen]]:
    ours, theirs = pty.openpty()
    demo = subprocess.Popen(COMMAND, cwd=ROOT, env=environment(tmp_path), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield demo, Screen(ours)
    finally:
        if demo.poll() is None:
            demo.terminate()
            demo.wait(30)
        os.close(ours)


def test_on_a_terminal_it_keeps_running_shows_arrivals_and_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path) as (demo, screen):
        folder = Path(screen.wait_for(r"Change or add files in (\S+)/drop\n")[1])
        page = screen.wait_for(r"See the values: (http://\S+)/ui\n  The key to sign in with: (\S+)\n")
        assert httpx.get(f"{page[1]}/v1/workspace", headers={"x-api-key": page[2]}).json()[0]["label"] == "Demo"
        screen.wait_for(r"Ctrl-C stops the demo")
        drop(folder, "mass-budget-2.csv", "part_number,mass_kg,margin_percent\n90001,1.5,10\n90002,2.50,20\n")
        screen.wait_for(r"Mass budget in Demo: 4 entries delivered")
        screen.wait_for(r"mass-budget: mass-budget-2\.csv is delivered")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 0
        screen.wait_for(r"1 062 entries delivered\n")
        assert "Traceback" not in screen.text
    assert left_behind(tmp_path) == []


def test_a_signal_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = subprocess.Popen(COMMAND, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
    with demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "mass-budget.csv" in line:
                break
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(30) == 128 + signal.SIGINT
    assert left_behind(tmp_path) == []


def test_a_service_that_does_not_start_is_reported_and_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "workspaced"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("import a_package_that_does_not_exist\n")
    demo = run(tmp_path, PYTHONPATH=str(broken.parent), PYTHONSAFEPATH="1")
    assert demo.returncode == 70
    assert "workspaced ended with exit code 1 before it was ready" in demo.stderr
    assert "pip install 'ingestd[workspaced]'" in demo.stderr
    assert "bug in ingestd" not in demo.stderr
    assert left_behind(tmp_path) == []
