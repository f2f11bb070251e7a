"""`ingestd demo`."""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from ingestd.daemon.demo import tell


@click.command()
def demo() -> None:
    """Show the whole way on this machine, with sample files.

    Starts a real workspace service and the daemon in a temporary folder, drops a mass budget, a test-bench run and a bill of
    materials, fills a small PDM database, and shows when each is visible; then changes two cells and shows that two
    entries travel. On a terminal it stays until Ctrl-C, elsewhere it ends by itself. Nothing is left behind.
    """
    sys.exit(asyncio.run(_until_interrupted(stay=sys.stdout.isatty())))


async def _until_interrupted(*, stay: bool) -> int:
    story = asyncio.create_task(tell(click.echo, stay=stay))
    # Whatever ends the demo, its children are ended first: both signals only cancel.
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, story.cancel)
    try:
        await story
    except asyncio.CancelledError:
        return 0 if stay else 128 + signal.SIGINT
    return 0
