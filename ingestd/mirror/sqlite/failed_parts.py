"""Failed parts of the daemon in the state file."""

from __future__ import annotations

from ingestd.mirror.failed_parts import FailedPart
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile


class FailedPartStore:
    """Implements `ingestd.mirror.failed_parts.FailedPartKeeper` over a state file."""

    def __init__(self, state: StateFile) -> None:
        self._state = state

    def record(self, failed: FailedPart) -> None:
        """See `FailedPartKeeper.record`."""
        row = (failed.part, failed.sentence, failed.failures, failed.since, failed.retry_at)
        with self._state.writing() as connection:
            connection.execute(SQL["failed_part_note"], row)

    def clear(self, part: str) -> None:
        """See `FailedPartKeeper.clear`."""
        with self._state.writing() as connection:
            connection.execute(SQL["failed_part_clear"], (part,))

    def clear_all(self) -> None:
        """See `FailedPartKeeper.clear_all`."""
        with self._state.writing() as connection:
            connection.execute(SQL["failed_parts_clear"])
