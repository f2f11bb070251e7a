"""The cursors of partitions in the state file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from ingestd.core.record import Cursor
from ingestd.mirror.reports import StoredCursor
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile


class CursorStore:
    """Changes cursors. The delivered values stay known, so a reading from another cursor sends only values that differ."""

    def __init__(self, state: StateFile) -> None:
        self._state = state

    def set_cursor(self, pipeline: str, partition: str, cursor: Cursor | None) -> bool:
        """Store the cursor of a partition (None: its beginning); return False if the pipeline never had the partition.

        The caller ensures that no reading of the partition runs, because the end of a reading would store another cursor.
        """
        row = {
            "pipeline": pipeline,
            "partition": partition,
            "cursor": json.dumps(dict(cursor)) if cursor is not None else None,
        }
        with self._state.writing() as connection:
            connection.execute(SQL["cursor_of_held_forget"], row)
            return connection.execute(SQL["cursor_set"], row).rowcount > 0


def read_cursors(connection: sqlite3.Connection, pipeline: str, partitions: Sequence[str]) -> list[StoredCursor]:
    """Return the cursors of partitions; see `Observer.cursors`."""
    rows = connection.execute(SQL["cursors_of"], {"pipeline": pipeline, "names": json.dumps(list(partitions))})
    return [from_row(StoredCursor, row, cursor=json.loads(row[1]) if row[1] is not None else None) for row in rows]
