"""Paused pipelines in the state file."""

from __future__ import annotations

from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile


class PauseStore:
    """Stores which pipelines are paused; `Observer.pauses` returns them. Methods block: call them in a thread.

    The delivery claims no entries of a paused pipeline. A claim that was made before the pause stays claimed.
    """

    def __init__(self, state: StateFile) -> None:
        self._state = state

    def begin(self, pipeline: str, *, at: float, by: str) -> bool:
        """Pause a pipeline of the state file; return False if it is paused already, or unknown."""
        with self._state.writing() as connection:
            return connection.execute(SQL["pause"], (at, by, pipeline)).rowcount > 0

    def end(self, pipeline: str) -> bool:
        """End the pause of a pipeline; return False if it is not paused."""
        with self._state.writing() as connection:
            return connection.execute(SQL["pause_end"], (pipeline,)).rowcount > 0
