"""The queue of scheduled drift checks."""

from __future__ import annotations

from ingestd.daemon.command_handler import CommandHandler
from ingestd.process.change_signal import ChangeSignal


class DriftQueue:
    """Checks the sinks of due pipelines, one pipeline at a time, to leave capacity for the delivery."""

    def __init__(self, command_handler: CommandHandler) -> None:
        self._command_handler = command_handler
        self._due: dict[str, None] = {}
        self._changes = ChangeSignal()

    def add(self, pipeline: str) -> None:
        """Add a pipeline; one that is in the queue already is checked once. Call it on the event loop."""
        self._due[pipeline] = None
        self._changes.notify()

    async def run(self) -> None:
        """Check due pipelines until cancelled."""
        while True:
            known = self._changes.generation
            while self._due:
                pipeline = next(iter(self._due))
                del self._due[pipeline]
                await self._command_handler.check([pipeline])
            await self._changes.wait_past(known)
