"""The sequence of readings: whole ones and those of changes, their cursor, and the sweep.

The cursor holds the state of the method, a fingerprint of what is read, and the time of the last whole reading. The fingerprint
covers the address, the query or table, the cursor column, the columns and the server. After a change of any of these the cursor
means nothing, so everything is read.

A sweep compares the keys and the row hashes of the server with the row index. If the index can't be used, and every
``whole_seconds``, it is a whole reading, which the intake compares with the mirror.

While a backfill runs, each reading of changes also yields the rows of its next page, whether they are known or not. A reading
that would be whole yields the page only, and one whole reading follows the last page. Else the table would be read as often as it
has pages.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import polars as pl
from msgspec.structs import replace

from connectors.database.changes.backfill import Backfill, cancel_backfill, next_page, stored_backfill
from connectors.database.changes.hashed_rows import HashedRows, hash_column, select_rows
from connectors.database.changes.method import (
    ChangeMethod,
    ChangeSource,
    Guarantee,
    Observation,
    ReadPlan,
    Restriction,
    State,
)
from connectors.database.changes.row_index import RowIndex
from connectors.database.changes.selection import choose_method
from connectors.database.changes.sweep import SweptKeys, read_keys, sweep_keys
from connectors.database.changes.whole import DataVersion
from connectors.database.port import Frame, ReadSession, ResultColumn, SqlDialect
from ingestd.sdk import Cursor, counted

_VERSION = 1
_SHAPES = {
    "fingerprint": dict, "state": dict, "reading": str, "at": int | float, "swept": int | float, "whole": int | float,
    "backfill": dict,
}  # fmt: skip
"""The types of members of the cursor. With another one, the table is read whole."""
_KEPT_SECONDS = 3600
"""A cursor with an older state is stored again although nothing changed, so that a restart does not read more."""

_PARTS: Mapping[str, str] = {
    "source": "the address, the table or query, or the cursor column and its settings",
    "columns": "the columns",
    "method": "the way in which changes are found",
    "server": "the server, or the definition of the table",
}


class ReadRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one reading.

    ``frame``: the rows. ``whole``: the reading holds every row, so that a missing row was removed. ``last``: this is the last
    frame. ``cursor``: the cursor after the reading; empty before the last frame, so that an interrupted one is repeated.
    ``removed``: on the last frame of a sweep, the positions of the rows that are missing.
    """

    frame: Frame
    whole: bool
    cursor: Cursor
    last: bool
    removed: tuple[str, ...] | None = None


MethodChooser: TypeAlias = Callable[[ReadSession, SqlDialect, ChangeSource, Sequence[ResultColumn]], ChangeMethod]
"""Chooses the method for a source of a server."""

_Token: TypeAlias = Mapping[str, Any]

_NOTHING = Restriction("1 = 0")


class _Memory(NamedTuple):
    """What is known beyond the durable cursor of the reading ``reading``; it was not stored because no row was new."""

    reading: str
    state: State
    version: object | None = None


class _Begin(NamedTuple):
    """Where a reading begins. ``version``: that of a file. ``has_page``: the next page of ``backfill`` is read, too."""

    token: _Token | None
    memory: _Memory | None
    version: object | None
    backfill: Backfill | None
    has_page: bool

    @property
    def is_unchanged(self) -> bool:
        return self.memory is not None and self.version is not None and self.version == self.memory.version


class ChangeReader:
    """Reads a source again and again. It belongs to one thread, except `guarantee`, `notice` and `progress`.

    ``open_session`` opens a session of a database with ``dialect``. ``columns`` returns the columns to read. ``identity`` is the
    address without a password. ``keys`` are the columns of the key, and ``settings`` what else the rows depend on.
    ``sweep_seconds``: the interval of sweeps, ``whole_seconds`` that of whole readings; 0: only when needed. ``report`` writes a
    sentence for operators. ``path`` is the file of a SQLite database, ``index_path`` returns that of the row index (None: it is
    not kept). ``choose`` chooses the method for a server. ``page_rows``: the number of rows in a page of a backfill.
    """

    def __init__(
        self,
        open_session: Callable[[], AbstractContextManager[ReadSession]],
        dialect: SqlDialect,
        source: ChangeSource,
        *,
        identity: str,
        keys: Sequence[str],
        sweep_seconds: float,
        whole_seconds: float = 0,
        settings: Sequence[object] = (),
        columns: Callable[[ReadSession], Sequence[ResultColumn]],
        now: Callable[[], float],
        report: Callable[[str], None],
        path: Path | None = None,
        index_path: Callable[[], Path | None] = lambda: None,
        choose: MethodChooser = choose_method,
        page_rows: int = 50_000,
    ) -> None:
        self._open = open_session
        self._dialect = dialect
        self._source = source
        self._identity = identity
        self._keys = keys
        self._sweep_seconds = sweep_seconds
        self._whole_seconds = whole_seconds
        self._settings = settings
        self._columns = columns
        self._now = now
        self._report = report
        self._choose_method = choose
        self._file = DataVersion(source, dialect, path) if path is not None else None
        self._index = RowIndex(index_path, report)
        self._finds_keys = True
        self._memory: _Memory | None = None
        self._forget = False
        self._forgotten = ""
        self.guarantee: Guarantee | None = None
        """The guarantee of the method that was chosen last; None before the first reading."""
        self.notice = ""
        """A sentence about rows of which only the sweep finds the changes; empty if there are none."""
        self.progress = ""
        """A sentence about a backfill; empty if none runs."""
        self.is_backfilling = False
        """True if the last reading was complete, and the next one reads another page of a backfill."""
        self.is_paused = False
        """True if a backfill waits; its position is kept."""
        self._page_rows = page_rows
        self._carried: Backfill | None = None

    def reset(self) -> None:
        """Have the next reading be whole."""
        self._forget, self._forgotten, self._carried = True, "", None

    def close(self) -> None:
        """Close what is open between readings."""
        self._index.close()
        if self._file is not None:
            self._file.close()

    def choose(self) -> Guarantee:
        """Choose the method, without reading rows, and return its guarantee.

        Raises:
            SourceUnavailable: the database is not reachable now.
            SourceBroken: the database or the configuration does not permit a reading.
        """
        with self._open() as session:
            return self._choose(session, self._columns(session)).guarantee

    def read(self, cursor: Cursor | None) -> Iterator[ReadRows]:
        """Yield the rows that may have changed since ``cursor``, or all of them; nothing if none has changed.

        Raises:
            SourceUnavailable: the database is not reachable now.
            SourceBroken: the database or the configuration does not permit a reading.
        """
        begin = self._begin_reading(cursor)
        if begin.is_unchanged and not (begin.has_page or self._forget):
            return
        with ExitStack() as stack:
            session = stack.enter_context(self._open())
            columns = self._columns(session)
            method = self._choose(session, columns)
            observation: Observation = {}
            if method.observes:
                _release(method, session, begin.token, begin.memory)
                observation = method.observe(session)
                stack.close()
                session = stack.enter_context(self._open())
            yield from self._read(session, columns, method, observation, begin)

    def _read(
        self,
        session: ReadSession,
        columns: Sequence[ResultColumn],
        method: ChangeMethod,
        observation: Observation,
        begin: _Begin,
    ) -> Iterator[ReadRows]:
        token, backfill = begin.token, begin.backfill
        fingerprint = self._fingerprint(method, columns, session)
        state = self._state(token, fingerprint, begin.memory)
        step = method.follow(session, state, observation)
        self.guarantee = method.guarantee  # it may say why this reading is whole
        is_only_page = False
        if begin.has_page and state is not None and step.restriction is None and not self._forget:
            is_only_page, step = True, ReadPlan(_NOTHING, state)
        cursor_after: dict[str, Any] = {"changes": _VERSION, "fingerprint": fingerprint, "state": dict(step.state)}
        if not method.remembers:
            yield from self._all(session, columns, cursor_after)
            return
        now = self._now()
        cursor_after |= backfill.member if backfill is not None else {}
        cursor_after |= {"reading": uuid.uuid4().hex[:16], "at": now, "swept": now, "whole": now}
        definition = _digest([fingerprint, self._dialect.row_hash(columns), *self._keys, *self._settings])
        hashed = hash_column(self._dialect, columns)
        rows = HashedRows(session, columns, self._keys, hashed, definition, method, step.restriction)
        is_whole = token is None or step.restriction is None or self._forget
        is_due = self._file is None and not is_only_page and self._is_due(token, "swept", self._sweep_seconds)
        is_sweep = is_whole or step.sweep or is_due
        if is_sweep:
            self._count_unfollowed(method, session, observation)
        if not is_whole and token is not None:
            if self._file is None:
                self._index.begin(str(token["reading"]), definition)
            since = {"whole": token["whole"]}
            swept = self._sweep(rows, since) if is_sweep else None
            if swept is not None or not is_sweep:
                since |= {} if is_sweep else {"swept": token["swept"]}
                yield from self._changes(rows, cursor_after | since, token, swept, begin)
                return
        following = _Memory(cursor_after["reading"], step.state, begin.version)
        if self._forget:
            self._forgotten = following.reading
        yield from self._all(session, columns, cursor_after, following, rows)

    def _begin_reading(self, cursor: Cursor | None) -> _Begin:
        """Return where the reading begins. A whole reading in place of one with a waiting backfill keeps its position."""
        token = dict(cursor) if cursor is not None and _is_of_this_version(cursor) else None
        if token is not None and self._forget and token["reading"] == self._forgotten:
            self._forget = False  # the whole reading that was asked for is durable
        known = self._memory
        memory = known if token is not None and known and known.reading == token["reading"] else None
        backfill = stored_backfill(token, self._keys) if token is not None else self._carried
        self._carried = backfill if token is not None and self.is_paused else None
        self.is_backfilling = False
        waits = " It waits until the held run is approved or discarded." if self.is_paused else ""
        self.progress = backfill.progress + waits if backfill is not None else ""
        version = self._file.version() if self._file is not None else None
        return _Begin(token, memory, version, backfill, has_page=backfill is not None and not self.is_paused)

    def _state(self, token: _Token | None, fingerprint: Mapping[str, str], memory: _Memory | None) -> State | None:
        """Return the state to continue from; None if there is none, or if it means nothing any more."""
        if token is None:
            return None
        changed = [name for name in _PARTS if token["fingerprint"].get(name) != fingerprint[name]]
        if changed:
            parts = " and ".join(_PARTS[name] for name in changed)
            self._report(f"{self._source.table or 'The query'} is read whole, because {parts} changed.")
            return None
        state: State = memory.state if memory is not None else token["state"]
        return state

    def _all(
        self,
        session: ReadSession,
        columns: Sequence[ResultColumn],
        cursor: _Token,
        following: _Memory | None = None,
        rows: HashedRows | None = None,
    ) -> Iterator[ReadRows]:
        """Yield every row. ``following``: the memory after the reading; ``rows``: how the row index gets its rows."""
        if rows is not None and (rows.hashed is None or not self._keys):
            rows = None
        if rows is not None:
            self._index.begin_whole(rows.definition)
        held: ReadRows | None = None
        for frame in session.frames(rows.with_hash if rows is not None else columns, self._source.source):
            if held is not None and not frame.records.height:
                continue
            read = frame
            if rows is not None:
                read, positions, hashes = rows.split(frame)
                self._index.add_listed(positions, hashes)
            if held is not None:
                yield held
            held = ReadRows(frame=read, whole=True, cursor={}, last=False)
        if held is not None:
            self._memory = following
            self.is_backfilling = "backfill" in cursor and not self.is_paused
            if rows is not None:
                self._index.end_whole(cursor["reading"])
            yield replace(held, cursor=cursor, last=True)

    def _sweep(self, rows: HashedRows, since: _Token) -> SweptKeys | None:
        """Compare the keys with the row index; None if everything must be read."""
        if not (self._index.is_valid and self._finds_keys) or self._is_due(since, "whole", self._whole_seconds):
            return None
        keys = [column for name in self._keys for column in rows.columns if column.name == name]
        hashed = None if rows.method.finds_every_change else rows.hashed
        return sweep_keys(rows.session, self._source.source, keys, hashed, self._index)

    def _changed_frames(self, rows: HashedRows, swept: SweptKeys | None) -> Iterator[Frame]:
        restriction = rows.restriction
        if restriction is not None and (swept is None or rows.method.finds_every_change):
            where = f"WHERE {restriction.condition}"
            return rows.session.frames(
                rows.with_hash, self._source.source, rest=where, parameters=restriction.parameters
            )
        if swept is None:
            raise ValueError("without a restriction every row is read")
        return read_keys(rows.session, self._dialect, self._source.source, rows.with_hash, swept.different)

    def _changes(
        self,
        rows: HashedRows,
        cursor: _Token,
        token: _Token,
        swept: SweptKeys | None,
        begin: _Begin,
    ) -> Iterator[ReadRows]:
        """Yield the next page of a backfill, and the rows that the index does not know.

        Nothing if there are none and the cursor is not old.
        """
        backfill = begin.backfill if begin.has_page else None
        held = ReadRows(frame=rows.empty_frame(), whole=False, cursor={}, last=False)
        found = paged = 0
        of_page: list[pl.Series] = []
        if backfill is not None:
            page, backfill = self._page(rows, backfill)
            for frame in page:
                read, positions, hashes = rows.split(frame)
                self._index.add_changes(positions, hashes)
                of_page.append(positions)
                paged += positions.len()
                yield replace(held, frame=read)
            cursor = self._after_page(cursor, backfill, paged)
        in_page = pl.concat(of_page) if paged else None
        for frame in self._changed_frames(rows, swept):
            read, positions, hashes = rows.split(frame)
            mask = self._index.select_new(positions, hashes)
            found += int(mask.sum())
            if in_page is not None:
                mask &= ~positions.is_in(in_page.implode())  # the page has the same rows of the same state
            fresh = select_rows(read, mask)
            if not fresh.records.height:
                continue
            self._index.add_changes(positions.filter(mask), hashes.filter(mask))
            if held.frame.records.height:
                yield held
            held = replace(held, frame=fresh)
        removed = swept.removed if swept is not None else None
        if swept is not None and not rows.method.finds_every_change and found < swept.different.height:
            # The database does not find rows by the text of their keys, so the sweeps are whole from now on.
            self._finds_keys, removed, cursor = False, None, {**cursor, "swept": token["swept"]}
        if found or paged or removed:
            self._index.end_changes(cursor["reading"], removed or ())
        else:
            cursor = {**cursor, "reading": token["reading"]}  # the index is that of the earlier reading
        self._memory = _Memory(cursor["reading"], cursor["state"], begin.version if begin.is_unchanged else None)
        is_old = cursor["at"] - token["at"] >= _KEPT_SECONDS
        if found or backfill is not None or removed is not None or is_old:
            # A whole reading follows the last page, because such readings found no changes.
            self.is_backfilling = backfill is not None and ("backfill" in cursor or rows.restriction is _NOTHING)
            yield replace(held, cursor=cursor, last=True, removed=removed)

    def _page(self, rows: HashedRows, backfill: Backfill) -> tuple[Iterator[Frame], Backfill]:
        """Return the rows of the next page, and the position after it: at no key after the last page."""
        session, from_ = rows.session, self._source.source
        if backfill.of is None:
            backfill = backfill._replace(of=int(session.scalar(f"SELECT count(*) FROM {from_}") or 0))
        keys = [column for name in self._keys for column in rows.columns if column.name == name]
        page = next_page(session, self._dialect, from_, keys, backfill, most_rows=self._page_rows)
        where, parameters = page.restriction
        frames = session.frames(rows.with_hash, from_, rest=f"WHERE {where}", parameters=parameters)
        return frames, backfill._replace(after=page.after)

    def _after_page(self, cursor: _Token, backfill: Backfill, paged: int) -> _Token:
        """Return the cursor after a page of ``paged`` rows."""
        backfill = backfill._replace(rows=backfill.rows + paged)
        if backfill.after is not None:
            self.progress = backfill.progress
            return {**cursor, **backfill.member}
        self.progress = ""
        self._report(
            f"The backfill of {self._source.table or 'the query'} is complete: {counted(backfill.rows, 'row')} read."
        )
        return cancel_backfill(cursor)

    def _is_due(self, token: _Token | None, which: str, seconds: float) -> bool:
        return token is not None and 0 < seconds <= self._now() - float(token[which])

    def _choose(self, session: ReadSession, columns: Sequence[ResultColumn]) -> ChangeMethod:
        method = self._file or self._choose_method(session, self._dialect, self._source, columns)
        self.guarantee = method.guarantee
        return method

    def _fingerprint(
        self, method: ChangeMethod, columns: Sequence[ResultColumn], session: ReadSession
    ) -> dict[str, str]:
        return {
            "source": _digest([self._identity, *msgspec.structs.astuple(self._source)]),
            "columns": _digest([[column.name, column.type, column.expression] for column in columns]),
            "method": type(method).__name__,
            "server": _digest(method.server(session)),
        }

    def _count_unfollowed(self, method: ChangeMethod, session: ReadSession, observation: Observation) -> None:
        condition = method.unfollowed(session, observation)
        if condition is None:
            self.notice = ""
            return
        where = f"WHERE {condition.condition}"
        count = session.scalar(f"SELECT count(*) FROM {self._source.source} {where}", condition.parameters)
        self.notice = ""
        if count not in {None, "0"}:
            values = f"a {self._source.cursor} that is NULL, infinite or in the future"
            self.notice = f"{count} rows have {values}: only the sweep finds their changes."


def _is_of_this_version(cursor: Cursor) -> bool:
    shapes = all(isinstance(cursor[name], type_) for name, type_ in _SHAPES.items() if name in cursor)
    return cursor.get("changes") == _VERSION and shapes


def _release(method: ChangeMethod, session: ReadSession, token: _Token | None, memory: _Memory | None) -> None:
    """Have the server release what it holds for the readings that are durable."""
    if token is not None and token["fingerprint"].get("method") == type(method).__name__:
        method.release(session, memory.state if memory is not None else token["state"])


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=12).hexdigest()
