"""A process of the demo that reports to its service manager for as long as it runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ingestd.commands.demo.child import environment_for_children, running

REPORTS = 1_000
"""More reports than the kernel queues for a socket that is not read."""

CHILD = f"""
import os, socket
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
    manager.connect("\\0" + os.environ["NOTIFY_SOCKET"][1:])
    manager.send(b"READY=1")
    for number in range({REPORTS}):
        manager.send(b"STATUS=%d" % number)
print("all reports are sent", flush=True)
"""


async def test_reports_after_readiness_never_stop_the_process(tmp_path: Path) -> None:
    (tmp_path / "reporting_child.py").write_text(CHILD)
    environment = {**environment_for_children(), "PYTHONPATH": os.fspath(tmp_path)}
    printed: asyncio.Queue[str] = asyncio.Queue()
    async with running(["reporting_child"], environment=environment, listen=printed.put_nowait):
        assert await asyncio.wait_for(printed.get(), 30) == "all reports are sent"
