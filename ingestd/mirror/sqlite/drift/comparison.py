"""Comparison of a sink's content with the mirror, in temporary tables of a separate read connection.

The content may be larger than memory, so it is in SQLite's temporary file, and the comparison is SQL over one snapshot of the
mirror. A written entry always gets a new segment. So an entry is unchanged since the check began if its segment is older than
the check and was not pending then.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

import msgspec
import polars as pl

from ingestd.core.guard import Guard, RunEffect, hold_reasons
from ingestd.mirror.drift import RemoveUnexplained
from ingestd.mirror.sqlite.entries.ownership import unexplained_count
from ingestd.mirror.sqlite.sql import SQL

FoundRow = tuple[str, str, int, int, str | None, str, str | None, str | None]
"""Key, what, partition, segment, wanted, its type, found, its type."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison: the number of entries in the service, and of keys that differ."""

    entries: int
    added: int
    changed: int
    removed: int


class Comparison:
    """Compares one sink. ``newest``: the newest segment when the check began; ``held``: its pending segments then.

    Call its methods in one thread, and close it.
    """

    def __init__(self, reader: sqlite3.Connection, *, sink: int, newest: int, held: Iterable[int]) -> None:
        self._reader = reader
        self._sink = sink
        self._newest = newest
        reader.execute("PRAGMA temp_store = FILE")
        reader.execute("PRAGMA temp.cache_size = -16384")  # KiB
        for statement in ("check_seen", "check_held", "check_finding", "check_unnamed_create"):
            reader.execute(SQL[statement])
        reader.executemany(SQL["check_hold"], ((segment,) for segment in held))

    def show(self, entries: pl.DataFrame) -> None:
        """Add a chunk of the service's content: key, value, data_type and, if it is known, author."""
        author = pl.col("author") if "author" in entries.columns else pl.lit(None, dtype=pl.String).alias("author")
        self._reader.execute("BEGIN")
        self._reader.executemany(SQL["check_show"], entries.select("key", "value", "data_type", author).iter_rows())
        self._reader.execute("COMMIT")

    def compare(self) -> Counts:
        """Compare the added content with the current mirror."""
        parameters = {"sink": self._sink, "newest": self._newest}
        self._reader.execute(SQL["check_order"])
        self._reader.execute("BEGIN")
        self._reader.execute(SQL["check_compare"], parameters)
        self._reader.execute(SQL["check_added"], parameters)
        self._reader.execute(SQL["check_unnamed"], parameters)
        counts = dict(self._reader.execute(SQL["check_counts"]).fetchall())
        entries = self._reader.execute(SQL["check_entries"]).fetchone()[0]
        self._reader.execute("COMMIT")
        return Counts(
            entries=entries,
            added=counts.get("added", 0),
            changed=counts.get("changed", 0),
            removed=counts.get("removed", 0),
        )

    def findings(self) -> Iterator[FoundRow]:
        """Yield the differences, by key."""
        yield from self._reader.execute(SQL["check_findings"])

    def changed_unnamed(self) -> Iterator[tuple[str | None, str, str]]:
        """Yield value, type and key of changed entries that no source has named."""
        yield from self._reader.execute(SQL["check_unnamed_changed"])

    def vanished_unnamed(self) -> Iterator[tuple[str]]:
        """Yield the keys that no source has named and that the service no longer has."""
        yield from self._reader.execute(SQL["check_unnamed_vanished"])

    def unexplained(self, which: RemoveUnexplained, guards: Collection[Guard], entries: int) -> Iterator[str]:
        """Yield the sorted keys of the unexplained entries that ``which`` selects. Call it after `compare`.

        Entries that only their author shows are kept if a guard would hold their removal from ``entries`` of the service.
        """
        if which == "keep":
            return
        earlier = bool(self._reader.execute(SQL["sink_adoption"], (self._sink,)).fetchone()[2])
        author = self._author() if earlier and which == "own" else None
        if author is not None:
            owned = self._reader.execute(SQL["check_of_author"], {"sink": self._sink, "author": author}).fetchone()[0]
            effect = RunEffect(before=entries, created=0, updated=0, removed=owned)
            author = None if any(hold_reasons(guard, effect) for guard in guards) else author
        parameters = {"sink": self._sink, "all": which == "remove", "earlier": earlier, "author": author}
        for (key,) in self._reader.execute(SQL["check_unexplained"], parameters):
            yield key

    def unexplained_count(self) -> int:
        """Return the number of unexplained entries of the sink now."""
        return unexplained_count(self._reader, self._sink)

    def _author(self) -> str | None:
        """Return the author of all explained entries; None if there are several."""
        authors = self._reader.execute(SQL["check_authors"], {"sink": self._sink}).fetchall()
        return authors[0][0] if len(authors) == 1 else None

    def close(self) -> None:
        """Close the connection and delete the temporary file."""
        self._reader.close()
