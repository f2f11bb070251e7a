"""Sinks that are read back on a schedule."""

from __future__ import annotations

from ingestd.daemon.command_handler import CommandHandler
from ingestd.process.change_signal import ChangeSignal


class DriftQueue:
    """Checks the sinks of pipelines that are due, one pipeline after the other, so that reading back never crowds delivery."""

    def __init__(self, performer: CommandHandler) -> None:
        self._performer = performer
        self._due: dict[str, None] = {}
        self._changes = ChangeSignal()

    def due(self, pipeline: str) -> None:
        """A pipeline's sink is to be read back; one that waits already is read once. On the event loop."""
        self._due[pipeline] = None
        self._changes.notify()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            known = self._changes.generation
            while self._due:
                pipeline = next(iter(self._due))
                del self._due[pipeline]
                await self._performer.check([pipeline])
            await self._changes.wait_past(known)
