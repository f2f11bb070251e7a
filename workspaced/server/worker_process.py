"""The supervisor's side of a worker."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass

from workspaced.server.channel import Channel, Message
from workspaced.server.worker import Assignment

# Only the supervisor reports to the service manager.
_NOT_INHERITED = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})


@dataclass(slots=True, kw_only=True)
class WorkerProcess:
    """A process with its channel; ``failed`` is the message that reports why the worker could not start."""

    process: asyncio.subprocess.Process
    channel: Channel
    ready: bool = False
    failed: Message | None = None

    @classmethod
    async def start(cls, assignment: Assignment, *, metrics_folder: str) -> WorkerProcess:
        """Start a process, in a process group of its own: the supervisor forwards Ctrl-C."""
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
        worker = cls(process=process, channel=channel)
        if process.stdin is None:
            raise AssertionError("the process was started with a pipe")
        process.stdin.write(pickle.dumps(assignment))
        process.stdin.close()
        return worker

    async def listen(self, ready: Callable[[], None]) -> None:
        """Receive messages until the worker is gone; call ``ready`` when it is ready."""
        while (message := await self.channel.receive()) is not None:
            if "failed" in message:
                self.failed = message
            elif message.get("ready"):
                self.ready = True
                ready()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process is alive."""
        if self.process.returncode is None:
            self.process.send_signal(number)
