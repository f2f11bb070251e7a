"""`ingestd demo`."""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from ingestd.commands.demo import run_demo
from ingestd.process.terminal_text import echo


@click.command()
def demo() -> None:
    """Run the service and the daemon on this machine with sample files.

    Starts a workspace service and the daemon in a temporary folder. Adds a mass budget, a test-bench run and a bill of
    materials, fills a small PDM database, and prints when the entries of each are visible. Then it changes two cells and shows
    that two entries are sent. On a terminal it runs until Ctrl-C, else it ends by itself. It removes all its files.

    Example: ingestd demo
    """
    sys.exit(asyncio.run(_until_interrupted(stay=sys.stdout.isatty())))


async def _until_interrupted(*, stay: bool) -> int:
    task = asyncio.create_task(run_demo(echo, stay=stay))
    # Both signals only cancel the task, because the demo must stop its child processes before it ends.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return 0 if stay else 128 + signal.SIGINT
    return 0
