"""A worker as its parent sees it."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from workspaced.server.channel import Channel, Message
from workspaced.server.worker import Assignment

# What the service manager told the parent is the parent's to answer.
_NOT_INHERITED = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})


@dataclass(slots=True, kw_only=True)
class WorkerProcess:
    """``answered_at`` is when it last said anything, on the monotonic clock; ``failed`` why it could not begin."""

    process: asyncio.subprocess.Process
    channel: Channel
    answered_at: float
    ready: bool = False
    failed: Message | None = None

    @classmethod
    async def start(cls, assignment: Assignment, *, metrics_folder: str) -> WorkerProcess:
        """A new process, in a process group of its own: Ctrl-C is the parent's to pass on."""
        ours, theirs = socket.socketpair()
        kept = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "workspaced.server",
                str(theirs.fileno()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
                env={**kept, "PROMETHEUS_MULTIPROC_DIR": metrics_folder},
            )
        channel = await Channel.over(ours)
        worker = cls(process=process, channel=channel, answered_at=time.monotonic())
        if process.stdin is None:
            raise AssertionError("the process was started with a pipe")
        process.stdin.write(pickle.dumps(assignment))
        process.stdin.close()
        return worker

    async def listen(self, ready: Callable[[], None]) -> None:
        """Take in what it says until it is gone; ``ready`` is called when it is."""
        while (message := await self.channel.heard()) is not None:
            self.answered_at = time.monotonic()
            if "failed" in message:
                self.failed = message
            elif message.get("ready"):
                self.ready = True
                ready()

    async def ask(self, question: str, *, within: float) -> Message | None:
        """Its answer; None if it does not answer in time."""
        answer = await self.channel.ask(question, within=within)
        if answer is not None:
            self.answered_at = time.monotonic()
        return answer

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it is still there."""
        if self.process.returncode is None:
            self.process.send_signal(number)
