"""Comparison of a sink's content with the mirror, in temporary tables of a separate read connection.

The content may be larger than memory, so it is stored in SQLite's temporary file. SQL compares it with one snapshot of the
mirror. A written entry always gets a new segment. So an entry is unchanged since the check began if its segment is older than
the check and was not pending when the check began.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

import msgspec
import polars as pl

from ingestd.core.clock import seconds_of
from ingestd.core.guard import Guard, RunEffect, hold_reasons
from ingestd.mirror.drift import RemoveUnexplained
from ingestd.mirror.sqlite.entries.adoption import PendingFound
from ingestd.mirror.sqlite.entries.ownership import unexplained_count
from ingestd.mirror.sqlite.sql import SQL

FoundRow = tuple[str, str, int, int, str | None, str, str | None, str | None, str, float | None]
"""The columns: key, kind of change, partition, segment, wanted value and type, found value and type, account and time of the
last update."""

_OPTIONAL = ("author", "changed_by", "changed_at")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a comparison: the number of entries in the service, and the numbers of keys that differ."""

    entries: int
    added: int
    changed: int
    removed: int


class Comparison:
    """Compares one sink. ``newest``: the newest segment when the check began; ``held``: the segments that were then pending.

    Call the methods in one thread, and call `close` at the end.
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
        self.is_undecided = False
        """True if `unexplained` could not find the author of the explained entries, because all of them were pending."""

    def show(self, entries: pl.DataFrame) -> None:
        """Add a chunk of the service's content; see `DriftStore.show`."""
        missing = (pl.lit(None, dtype=pl.String).alias(name) for name in _OPTIONAL if name not in entries.columns)
        rows = entries.with_columns(*missing).select("key", "value", "data_type", *_OPTIONAL)
        self._reader.execute("BEGIN")
        self._reader.executemany(SQL["check_show"], rows.iter_rows())
        self._reader.execute("COMMIT")

    def compare(self) -> Counts:
        """Compare the content that `show` has added with the current mirror."""
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
        for *found, changed_at in self._reader.execute(SQL["check_findings"]):
            yield (*found, seconds_of(changed_at or ""))

    def changed_unnamed(self) -> Iterator[tuple[str | None, str, str]]:
        """Yield value, type and key of changed entries that no source has named."""
        yield from self._reader.execute(SQL["check_unnamed_changed"])

    def vanished_unnamed(self) -> Iterator[tuple[str]]:
        """Yield the keys that no source has named and that the service no longer has."""
        yield from self._reader.execute(SQL["check_unnamed_vanished"])

    def pending(self) -> Iterator[PendingFound]:
        """Yield the pending entries that the service has."""
        parameters = {"sink": self._sink, "newest": self._newest}
        for key, segment, partition, row_hash, value, kind, at in self._reader.execute(
            SQL["check_pending"], parameters
        ):
            yield PendingFound(key, segment, partition, row_hash, value, kind, seconds_of(at or "") or 0.0)

    def unexplained(self, which: RemoveUnexplained, guards: Collection[Guard], entries: int) -> Iterator[str]:
        """Yield the sorted keys of the unexplained entries that ``which`` selects. Call it after `compare`.

        Entries selected because of their author are kept if a guard would hold their removal. ``entries``: the size of the sink.
        """
        if which == "keep":
            return
        earlier = bool(self._reader.execute(SQL["sink_adoption"], (self._sink,)).fetchone()[2])
        author = self._author() if earlier and which == "own" else None
        if earlier and which == "own" and author is None:
            self.is_undecided = self._is_author_pending()
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

    def _is_author_pending(self) -> bool:
        """Return True if a later check may find an author: no explained entry was delivered yet, but entries were pending."""
        has_author = self._reader.execute(SQL["check_authors"], {"sink": self._sink}).fetchone() is not None
        return not has_author and bool(self._reader.execute(SQL["check_holds"]).fetchone()[0])

    def close(self) -> None:
        """Close the connection and delete the temporary file."""
        self._reader.close()
