"""Failed parts of the daemon in the state file."""

from __future__ import annotations

from ingestd.mirror.reports import FailedPart
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile


class FailedPartStore:
    """Stores failed parts for `ingestd status`. Methods block: call them in a thread."""

    def __init__(self, state: StateFile) -> None:
        self._state = state

    def record(self, failed: FailedPart) -> None:
        """Store a failure. If the part has failed before, its ``since`` stays."""
        row = (failed.part, failed.sentence, failed.failures, failed.since, failed.retry_at)
        with self._state.writing() as connection:
            connection.execute(SQL["failed_part_note"], row)

    def clear(self, part: str) -> None:
        """Delete a part that has recovered."""
        with self._state.writing() as connection:
            connection.execute(SQL["failed_part_clear"], (part,))

    def clear_all(self) -> None:
        """Delete all failed parts; called at a start of the daemon."""
        with self._state.writing() as connection:
            connection.execute(SQL["failed_parts_clear"])
