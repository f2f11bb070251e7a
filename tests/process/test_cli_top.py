"""`ingestd top` in a real pseudo-terminal: it shows the daemon, follows the size, and restores the terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.daemon_process import DEADLINE_SECONDS, environment
from tests.support.engineering_folder import Folder


class Terminal:
    """A pseudo-terminal with a program for which it is the controlling one, so that Ctrl-C is a key."""

    def __init__(self, folder: Folder, *words: str) -> None:
        self.keyboard, theirs = pty.openpty()
        self.resize(80, 24)
        self.settings = termios.tcgetattr(theirs)
        env = {
            name: value
            for name, value in environment(folder.path, TERM="xterm").items()
            if name not in {"COLUMNS", "LINES"}
        }
        command = ["setsid", "--ctty", sys.executable, "-m", "ingestd", *words, "-c", str(folder.config)]
        self.program = subprocess.Popen(command, cwd=folder.path, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        self._theirs = theirs  # kept open, so that the settings can be read after the end
        self.text = ""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, key: bytes) -> None:
        os.write(self.keyboard, key)

    def wait_for(self, pattern: str, *, after: int = 0) -> re.Match[str]:
        """Return the match of the text that was written from the position ``after`` on."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (found := re.compile(pattern, re.DOTALL).search(self.text, after)) is None:
            assert select.select([self.keyboard], [], [], max(0.0, deadline - time.monotonic()))[0], self.text
            self.text += os.read(self.keyboard, 65_536).decode()
        return found

    def ended(self) -> int:
        self.wait_for(r"\x1b\[\?25h\x1b\[\?1049l")
        status = self.program.wait(30)
        assert termios.tcgetattr(self._theirs) == self.settings, "the terminal is restored"
        return status

    def close(self) -> None:
        if self.program.poll() is None:
            self.program.kill()
            self.program.wait(30)
        os.close(self.keyboard)
        os.close(self._theirs)


@contextmanager
def terminal(folder: Folder, *words: str) -> Iterator[Terminal]:
    opened = Terminal(folder, *words)
    try:
        yield opened
    finally:
        opened.close()


def test_it_shows_the_daemon_follows_the_size_and_ends_with_q(folder: Folder) -> None:
    with folder.daemon() as daemon, terminal(folder, "top", "--interval", "0.2") as screen:
        screen.wait_for(r"\x1b\[\?1049h\x1b\[\?25l.*the daemon runs \(process \d+\).*budget +waiting")
        folder.write("part,mass\n00417,0.10\n,2\n")
        daemon.wait_for("partition_acknowledged")
        screen.wait_for(r"budget +attention +\d+ +1 +\d+s.*Budget in Bench +ok +\d+ +1 +0")
        frames = re.findall(r"\x1b\[H(.*?)\x1b\[J", screen.text, re.DOTALL)
        assert all(len(line.replace("\x1b[K", "")) <= 80 for frame in frames for line in frame.split("\r\n"))
        before = len(screen.text)
        screen.resize(132, 8)
        screen.wait_for(r"PIPELINE {80,}STATE", after=before)
        screen.press(b"x")
        screen.press(b"q")
        assert screen.ended() == 0
        counts = json.loads(folder.here("status", "--json").stdout)["since_start"]
        assert counts == {"records": {"budget": 2}, "delivered": {"Budget in Bench": 1}}
        assert daemon.stop() == 0


def test_ctrl_c_and_sigterm_restore_the_terminal(folder: Folder) -> None:
    folder.write("part,mass\n00417,0.10\n")
    assert folder.here("sync").returncode == 0
    with terminal(folder, "top") as screen:
        screen.wait_for("the daemon does not run.*budget +ok")
        screen.press(b"\x03")
        assert screen.ended() == 0
    with terminal(folder, "top", "--interval", "3600") as screen:
        screen.wait_for(r"\x1b\[J")
        screen.program.terminate()
        assert screen.ended() == 128 + signal.SIGTERM


def test_in_a_pipe_one_screen_is_printed_as_text(folder: Folder) -> None:
    folder.write("part,mass\n00417,0.10\n")
    assert folder.here("sync").returncode == 0
    for words in (("top",), ("top", "--once")):
        run = folder.here(*words)
        assert (run.returncode, run.stderr) == (0, "")
        assert "\x1b" not in run.stdout
        assert re.search(r"^budget +ok +- +0 +\d+s$", run.stdout, re.MULTILINE)
