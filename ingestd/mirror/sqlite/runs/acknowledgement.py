"""Acknowledged partitions, their results, and the resolution of their rejections by corrected records."""

from __future__ import annotations

import json
import sqlite3
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from operator import itemgetter

from ingestd.core.address import SinkAddress
from ingestd.core.record import Acknowledgement, Cursor, Deletes, Partition, Rejected
from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile

_PAGE = 1_000

_PARTITIONS = 1_000
"""Maximum number of partitions that are read in one transaction."""


class AcknowledgedPartitions:
    """Finds the partitions that became acknowledged. Triggers note which partitions have to be examined."""

    def __init__(self, state: StateFile) -> None:
        self._state = state
        self.may_notify: Callable[[int, str], bool] = lambda _partition, _cursor: True
        """Return whether a source may be notified of a partition (id, cursor). The source may delete the data afterwards."""
        self._changes_untouched: dict[str, int] = {}
        """By pipeline, the value of `StateFile.changes` at the last call that found no partition to examine."""
        with state.writing() as connection:
            for statement in ("touched_create", "touched_by_segment", "touched_by_run", "touched_at_start"):
                connection.execute(SQL[statement])

    def of_pipeline(self, pipeline: str, *, at_once: bool = False) -> list[tuple[int, Partition, Cursor]]:
        """Return (id, partition, cursor) of each acknowledged partition with a source that was not notified yet.

        An acknowledged partition was read completely and has nothing pending. Without ``at_once``, ``may_notify`` must permit
        the notification. If nothing has changed since a call that found no partition to examine, no transaction is needed.
        """
        if self._changes_untouched.get(pipeline) == self._state.changes:
            return []
        rows: list[tuple[float, int, Partition, str]] = []
        after: int | None = 0
        while after is not None:
            with self._state.writing() as connection:
                known = connection.execute(SQL["pipeline_get"], (pipeline,)).fetchone()
                if known is None:
                    return []
                page = connection.execute(SQL["partitions_touched"], (known[0], after, _PARTITIONS)).fetchall()
                rows += [
                    (run, identity, _partition(name, *kind), cursor)
                    for identity, name, *kind, cursor, run, is_acknowledged in page
                    if is_acknowledged and (at_once or self.may_notify(identity, cursor))
                ]
                pending = [(known[0], identity) for identity, *_, done in page if not done]
                connection.executemany(SQL["touched_drop"], pending)
                changes = connection.total_changes
            if not page and after == 0:
                self._changes_untouched[pipeline] = changes
            after = page[-1][0] if len(page) == _PARTITIONS else None
        rows.sort(key=itemgetter(0, 1))
        return [(identity, partition, json.loads(cursor)) for _, identity, partition, cursor in rows]


def acknowledgement_of(
    connection: sqlite3.Connection, partition: int, reader: Callable[[], sqlite3.Connection]
) -> Acknowledgement:
    """Return the result of a partition's last reading. ``reader`` opens a connection that streams the rejections."""
    row = connection.execute(SQL["partition_last_run"], (partition,)).fetchone()
    run, started, ended, pipeline, workspace, by, name, digest, records, *changes, valueless, facts = row
    created, updated, unchanged, removed = changes
    rejected = refused = 0
    if connection.execute(SQL["rejected_any"], (partition,)).fetchone()[0]:
        with closing(reader()) as listing:
            rejected, refused = listing.execute(SQL["rejected_count"], (partition,)).fetchone()
    return Acknowledgement(
        run=run, started=started, ended=ended, pipeline=pipeline,
        sink=str(SinkAddress(workspace=workspace, by=by, name=name)), digest=digest, records=records, created=created,
        updated=updated, unchanged=unchanged, removed=removed, rejected=rejected, refused=refused,
        valueless=valueless,
        facts=json.loads(facts),
        # Most partitions have no rejections, and opening a connection takes longer than everything else here.
        rejects=partial(_stream_rejections, reader, partition) if rejected else partial(iter, ()),
    )  # fmt: skip


def resolve(connection: sqlite3.Connection, pipeline: str, references: Sequence[str]) -> None:
    """Delete the rejections of the pipeline with these ``references``; ignore all other references."""
    wanted = set(references)
    numbers = {reference.partition("-")[0] for reference in wanted}
    ids = [int(number) for number in numbers if number.isascii() and number.isdecimal() and len(number) < _DIGITS]
    found = connection.execute(SQL["rejected_times"], (json.dumps(ids), pipeline)).fetchall()
    meant = [number for number, at in found if _reference(number, at) in wanted]
    connection.execute(SQL["rejected_drop"], (json.dumps(meant),))


def _partition(name: str, snapshot: int, deletes: Deletes, small: int, replayable: int) -> Partition:
    return Partition(
        name=name, snapshot=bool(snapshot), deletes=deletes, small=bool(small), replayable=bool(replayable)
    )


def _stream_rejections(reader: Callable[[], sqlite3.Connection], partition: int) -> Iterator[Rejected]:
    with closing(reader()) as connection:
        ids = array("q", (number for (number,) in connection.execute(SQL["rejected_ids"], (partition,))))
        for page in pages(ids, _PAGE):
            for row in connection.execute(SQL["rejected_details"], (json.dumps(page),)).fetchall():
                number, at, subject, position, reason, field, key, status, record, facts = row
                yield Rejected(
                    reference=_reference(number, at), subject=subject, position=position, reason=reason, field=field,
                    key=key or "", status=status, record=json.loads(record), facts=json.loads(facts or "{}"),
                )  # fmt: skip


def _reference(number: int, at: float) -> str:
    """Return a rejection's number with a checksum of its time, because another state file may use the same number."""
    return f"{number}-{zlib.crc32(repr(at).encode()) & 0xFFFF:04x}"


_DIGITS = 19
