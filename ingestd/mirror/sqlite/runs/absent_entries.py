"""Removes the entries of a partition that its records do not name any more, at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from ingestd.core.record import NOTICE
from ingestd.mirror.port import Removal
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.entry_writer import pass_on, remove_entries
from ingestd.mirror.sqlite.entries.ownership import disown, left_over
from ingestd.mirror.sqlite.entries.shared_keys import drop_names, left_over_names
from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.runs.amendment import find_unnamed
from ingestd.mirror.sqlite.runs.held_runs import EndOfRun
from ingestd.mirror.sqlite.runs.run_effect import PAGE
from ingestd.mirror.sqlite.runs.run_writer import RunState, RunWriter
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile

_DEFERRED = (
    "because a rejected record may name any entry: the key of the record is not known. Correct the record, or remove it from "
    "the source; 'ingestd rejected list' shows it."
)


class AbsentEntries:
    """Removes entries, or gives them to other partitions that name them. Each page is one transaction."""

    def __init__(self, state: StateFile, writer: RunWriter, *, announce: Callable[[int], None]) -> None:
        self._state = state
        self._writer = writer
        self._announce = announce

    def remove_amended(self, run: RunState, end: EndOfRun) -> None:
        """Remove entries that the records of a partial reading do not produce any more."""
        with self._state.reading() as reader:
            unnamed = find_unnamed(reader, run, end)
            names = find_unnamed(reader, run, end, statement="also_named_at_positions")
        self._drop_names(run, names)
        self._remove(run, unnamed)

    def remove_unnamed(self, run: RunState, seen: RowHashes, deletes: Removal) -> None:
        """Remove or release the entries that a whole reading does not name. ``seen``: the row hashes of the reading."""
        if deletes == "defer":
            self._note_deferred(run, seen)
        elif run.remapped and run.whole:
            self._remove_left_over(run, deletes)
        elif deletes == "remove" or run.has_rejected:  # without removals, only conflicts have names
            for page in self._vanished(run, seen, "also_named_hashes"):
                self._drop_names(run, page)
            for page in self._vanished(run, seen, "entries_of_partition") if deletes == "remove" else ():
                self._remove(run, page)

    def _note_deferred(self, run: RunState, seen: RowHashes) -> None:
        """State in the notice of the run how many entries stay although no record is known to name them."""
        if run.remapped and run.whole:
            with self._state.reading() as reader:
                count = left_over(reader, sink=run.sink, partition=run.partition, run=run.id).height
        else:
            count = sum(map(len, self._vanished(run, seen, "entries_of_partition")))
        if count:
            entries = (
                "1 entry that no record names stays" if count == 1 else f"{count} entries that no record names stay"
            )
            row = {"run": run.id, "path": f'$."{NOTICE}"', "sentence": f"{entries}, {_DEFERRED}"}
            with self._state.writing() as connection:
                connection.execute(SQL["run_add_notice"], row)

    def _vanished(self, run: RunState, seen: RowHashes, statement: str) -> Iterator[list[str]]:
        """Yield pages of the keys with a record that is not in the reading. ``statement`` lists keys with row hashes.

        A read connection lists each page, because a sink may be large. After a crash, the next reading finds the other keys.
        """
        for part in seen.ranges():
            after: str | None = ""
            while after is not None:
                page = {"sink": run.sink, "partition": run.partition, "after": after, "limit": PAGE, **part.parameters}
                with self._state.reading() as reader:
                    rows = reader.execute(SQL[statement], page).fetchall()
                known = pl.DataFrame(rows, schema={"key": pl.String, "row_hash": pl.Int64}, orient="row")
                yield known.filter(part.mask_absent(known["row_hash"]))["key"].to_list()
                after = rows[-1][0] if len(rows) == PAGE else None

    def _remove_left_over(self, run: RunState, deletes: Removal) -> None:
        """Remove or release entries of the former mapping. Row hashes do not show them, because their records still exist."""
        with self._state.reading() as reader:
            entries = left_over(reader, sink=run.sink, partition=run.partition, run=run.id)
            names = left_over_names(reader, sink=run.sink, partition=run.partition, run=run.id)
        self._drop_names(run, names)
        if deletes == "remove":
            self._remove(run, entries["key"].to_list())
            return
        keys = entries.filter(~pl.col("pending"))["key"].to_list()
        for page in pages(keys, PAGE):
            with self._state.writing() as connection:
                passed, updated = pass_on(self._writer.target(connection, run), page)
                self._writer.count(connection, run, None, updated=updated)
                disown(connection, run.sink, sorted({*page}.difference(passed)))
            if updated:
                self._announce(run.sink)

    def _drop_names(self, run: RunState, keys: list[str]) -> None:
        """Delete the names that the partition has stored for ``keys``, because its records do not produce them any more."""
        for page in pages(keys, PAGE):
            with self._state.writing() as connection:
                drop_names(connection, run.sink, run.partition, page)

    def _remove(self, run: RunState, keys: list[str]) -> None:
        """Queue removals in pages, so that other writers can run between two pages."""
        for page in pages(keys, PAGE):
            with self._state.writing() as connection:
                removed = remove_entries(self._writer.target(connection, run), page)
                self._writer.count(connection, run, None, removed=removed.removed, updated=removed.updated)
            if removed.removed or removed.updated:
                self._announce(run.sink)
