"""The reader of a source: whole readings and readings of changes, their cursor, and the sweep.

The cursor has the state of the method, a fingerprint, and the times of the last sweep and the last whole reading. The
fingerprint covers the address, the query or table, the cursor column, the columns and the server. If one of these changes, the
cursor is no longer valid, and everything is read.

A sweep compares the keys and the row hashes of the server with the row index. If the index can't be used, or ``whole_seconds``
have passed, a whole reading replaces the sweep. The intake compares a whole reading with the mirror.

While a backfill runs, each reading of changes also yields all rows of the next page. If the method then requests all rows, only
the next page is read: otherwise the whole table would be read for each page. One whole reading follows the last page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple

import msgspec
import polars as pl
from msgspec.structs import replace

from connectors.database.batches import named_columns
from connectors.database.changes.backfill import Backfill, cancel_backfill, next_page, stored_backfill
from connectors.database.changes.cursor import VERSION, Token, digest, new_reading, stored_token
from connectors.database.changes.hashed_rows import (
    HashedRows,
    SweptKeys,
    hash_column,
    read_keys,
    select_rows,
    sweep_keys,
)
from connectors.database.changes.method import (
    ChangeMethod,
    Guarantee,
    MethodChooser,
    Observation,
    ReadPlan,
    Restriction,
    State,
)
from connectors.database.changes.row_index import RowIndex
from connectors.database.changes.selection import choose_method
from connectors.database.changes.whole import DataVersion
from connectors.database.port import Frame, ReadSession, ResultColumn, SqlDialect
from ingestd.sdk import Cursor, SourceContext, counted

_KEPT_SECONDS = 3600
"""After this time the cursor is stored again, even if nothing changed. So a restart never begins at a much older cursor."""

_PARTS: Mapping[str, str] = {
    "source": "the address, the table or query, or the cursor column and its settings",
    "columns": "the columns",
    "method": "the way in which changes are found",
    "server": "the server, or the definition of the table",
}
_NOTHING = Restriction("1 = 0")


class ReadRows(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows of a reading."""

    frame: Frame
    whole: bool
    """True if the reading yields every row. Then a row that is missing was removed."""
    last: bool = False
    """True for the last frame."""
    cursor: Cursor = {}
    """The cursor after the reading; empty before the last frame, so that an interrupted reading is repeated."""
    removed: tuple[str, ...] | None = None
    """For the last frame of a sweep: the positions of the removed rows. None without a sweep."""


class _Memory(NamedTuple):
    """The state after the last reading. If no row was new, it is newer than the durable cursor with the id ``reading``."""

    reading: str
    state: State
    version: object | None = None


class _Begin(NamedTuple):
    """What is known when a reading begins. ``version``: see `ChangeMethod.version`. ``has_page``: a page is also read."""

    token: Token | None
    memory: _Memory | None
    version: object | None
    backfill: Backfill | None
    has_page: bool

    @property
    def is_unchanged(self) -> bool:
        return self.memory is not None and self.version is not None and self.version == self.memory.version


class ChangeReader:
    """Reads a source repeatedly. Only `guarantee`, `notice` and `progress` may be used by more than one thread.

    ``open_session`` opens a session of the database. ``choose`` selects the method; the default is `choose_method`.
    """

    def __init__(
        self,
        context: SourceContext,
        dialect: SqlDialect,
        open_session: Callable[[], AbstractContextManager[ReadSession]],
        choose: MethodChooser | None = None,
    ) -> None:
        self._context = context
        self._dialect = dialect
        self._options = dialect.options
        self._open = open_session
        self._choose_method = choose or choose_method
        self._file: DataVersion | None = None
        if dialect.name == "sqlite" and choose is None:
            self._file = DataVersion(dialect, context.base / self._options.address().database)
        self._index = RowIndex(lambda: context.cache("rows.db"), context.log)
        self._finds_keys = True
        self._memory: _Memory | None = None
        self._forget = False
        self._forgotten = ""
        self._carried: Backfill | None = None
        self.guarantee: Guarantee | None = None
        """The guarantee of the method that was chosen last; None if none was chosen yet."""
        self.notice = ""
        """A sentence about rows with changes that only a sweep finds; empty if the last sweep found no such row."""
        self.progress = ""
        """A sentence about the running backfill; empty if no backfill runs."""
        self.is_backfilling = False
        """True if the last reading reached its end, and the next reading is due at once because a backfill continues."""
        self.is_paused = False
        """True if a backfill must wait. The cursor keeps the progress of the backfill."""

    def reset(self) -> None:
        """Let the next reading read everything. A backfill is forgotten."""
        self._forget, self._forgotten, self._carried = True, "", None

    def close(self) -> None:
        """Close the files that stay open between readings."""
        self._index.close()
        if self._file is not None:
            self._file.close()

    def choose(self) -> Guarantee:
        """Choose the method, and return its guarantee. No row is read.

        Raises:
            SourceUnavailable: the database is not reachable now.
            SourceBroken: the database or the configuration does not permit a reading.
        """
        with self._open() as session:
            return self._choose(session, named_columns(session, self._dialect)).guarantee

    def read(self, cursor: Cursor | None) -> Iterator[ReadRows]:
        """Yield the rows that may have changed since ``cursor``, or all rows. Yield nothing if no row has changed.

        Raises:
            SourceUnavailable: the database is not reachable now.
            SourceBroken: the database or the configuration does not permit a reading.
        """
        begin = self._begin_reading(cursor)
        if begin.is_unchanged and not (begin.has_page or self._forget):
            return
        with ExitStack() as stack:
            session = stack.enter_context(self._open())
            columns = named_columns(session, self._dialect)
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
        self.guarantee = method.guarantee
        is_only_page = False
        if begin.has_page and state is not None and step.restriction is None and not self._forget:
            is_only_page, step = True, ReadPlan(_NOTHING, state)
        cursor_after: dict[str, Any] = {"changes": VERSION, "fingerprint": fingerprint, "state": dict(step.state)}
        options = self._options
        settings = (*options.keys, options.deletes, options.binary, options.char_padding, options.money, options.nan)
        definition = digest([fingerprint, self._dialect.row_hash(columns), *settings])
        rows = HashedRows(session, columns, hash_column(self._dialect, columns), definition, method, step.restriction)
        if not method.remembers:
            yield from self._all(rows, cursor_after)
            return
        now = self._context.now()
        cursor_after |= backfill.member if backfill is not None else {}
        cursor_after |= {"reading": new_reading(), "at": now, "swept": now, "whole": now}
        is_whole = token is None or step.restriction is None or self._forget
        is_due = self._file is None and not is_only_page and self._is_due(token, "swept", options.sweep_seconds)
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
        yield from self._all(rows, cursor_after, following)

    def _begin_reading(self, cursor: Cursor | None) -> _Begin:
        """Return what is known when a reading begins. A paused backfill is kept, even if the next reading is whole."""
        token = stored_token(cursor)
        if token is not None and self._forget and token["reading"] == self._forgotten:
            self._forget = False  # the whole reading that `reset` requested is durable
        known = self._memory
        memory = known if token is not None and known and known.reading == token["reading"] else None
        backfill = stored_backfill(token, self._options.keys) if token is not None else self._carried
        self._carried = backfill if token is not None and self.is_paused else None
        self.is_backfilling = False
        waits = " It waits until the held run is approved or discarded." if self.is_paused else ""
        self.progress = backfill.progress + waits if backfill is not None else ""
        version = self._file.version() if self._file is not None else None
        return _Begin(token, memory, version, backfill, has_page=backfill is not None and not self.is_paused)

    def _state(self, token: Token | None, fingerprint: Mapping[str, str], memory: _Memory | None) -> State | None:
        """Return the state after the last reading; None if there is no state, or if the fingerprint has changed."""
        if token is None:
            return None
        changed = [name for name in _PARTS if token["fingerprint"].get(name) != fingerprint[name]]
        if changed:
            parts = " and ".join(_PARTS[name] for name in changed)
            self._context.log(f"{self._dialect.table or 'The query'} is read whole, because {parts} changed.")
            return None
        state: State = memory.state if memory is not None else token["state"]
        return state

    def _all(self, rows: HashedRows, cursor: Token, following: _Memory | None = None) -> Iterator[ReadRows]:
        """Yield every row. Afterwards, remember the state ``following``. If it is None, no row is put into the row index."""
        is_indexed = following is not None and rows.hashed is not None and bool(rows.dialect.options.keys)
        if is_indexed:
            self._index.begin_whole(rows.definition)
        held: ReadRows | None = None
        for frame in rows.session.frames(rows.with_hash if is_indexed else rows.columns, rows.dialect.source):
            if held is not None and not frame.records.height:
                continue
            read = frame
            if is_indexed:
                read, positions, hashes = rows.split(frame)
                self._index.add_listed(positions, hashes)
            if held is not None:
                yield held
            held = ReadRows(frame=read, whole=True)
        if held is not None:
            self._memory = following
            self.is_backfilling = "backfill" in cursor and not self.is_paused
            if is_indexed:
                self._index.end_whole(cursor["reading"])
            yield replace(held, cursor=cursor, last=True)

    def _sweep(self, rows: HashedRows, since: Token) -> SweptKeys | None:
        """Compare the keys of all rows with the row index. Return None if a whole reading is due or needed."""
        can_compare = self._index.is_valid and self._finds_keys
        is_due = self._is_due(since, "whole", self._options.whole_seconds)
        return sweep_keys(rows, self._index) if can_compare and not is_due else None

    def _changed_frames(self, rows: HashedRows, swept: SweptKeys | None) -> Iterator[Frame]:
        restriction = rows.restriction
        if restriction is not None and (swept is None or rows.method.finds_every_change):
            where, parameters = restriction
            return rows.session.frames(rows.with_hash, rows.dialect.source, f"WHERE {where}", parameters)
        if swept is None:
            raise ValueError("a reading of changes needs a restriction or a sweep")
        return read_keys(rows, swept.different)

    def _changes(
        self, rows: HashedRows, cursor: Token, token: Token, swept: SweptKeys | None, begin: _Begin
    ) -> Iterator[ReadRows]:
        """Yield the next page of a backfill, and the rows that are new or changed according to the index.

        If there is nothing new, yield nothing. But if the stored cursor is old, yield an empty frame with the new cursor.
        """
        backfill = begin.backfill if begin.has_page else None
        held = ReadRows(frame=rows.empty_frame(), whole=False)
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
                mask &= ~positions.is_in(in_page.implode())  # the page yielded these rows already, in the same state
            fresh = select_rows(read, mask)
            if not fresh.records.height:
                continue
            self._index.add_changes(positions.filter(mask), hashes.filter(mask))
            if held.frame.records.height:
                yield held
            held = replace(held, frame=fresh)
        removed = swept.removed if swept is not None else None
        if swept is not None and not rows.method.finds_every_change and found < swept.different.height:
            # The database can't find rows by the text of their keys. So from now on, whole readings replace sweeps.
            self._finds_keys, removed, cursor = False, None, {**cursor, "swept": token["swept"]}
        if found or paged or removed:
            self._index.end_changes(cursor["reading"], removed or ())
        else:
            cursor = {**cursor, "reading": token["reading"]}  # the index still belongs to the earlier reading
        self._memory = _Memory(cursor["reading"], cursor["state"], begin.version if begin.is_unchanged else None)
        is_old = cursor["at"] - token["at"] >= _KEPT_SECONDS
        if found or backfill is not None or removed is not None or is_old:
            # If only the last page was read, changes were not looked for. So a whole reading must follow.
            self.is_backfilling = backfill is not None and ("backfill" in cursor or rows.restriction is _NOTHING)
            yield replace(held, cursor=cursor, last=True, removed=removed)

    def _page(self, rows: HashedRows, backfill: Backfill) -> tuple[Iterator[Frame], Backfill]:
        """Return the rows of the next page, and the backfill after it. Its ``after`` is None if this page is the last."""
        if backfill.of is None:
            backfill = backfill._replace(
                of=int(rows.session.scalar(f"SELECT count(*) FROM {rows.dialect.source}") or 0)
            )
        (where, parameters), after = next_page(rows, backfill, self._options.batch_rows)
        frames = rows.session.frames(rows.with_hash, rows.dialect.source, f"WHERE {where}", parameters)
        return frames, backfill._replace(after=after)

    def _after_page(self, cursor: Token, backfill: Backfill, paged: int) -> Token:
        """Return the cursor after a page with ``paged`` rows. ``backfill``: the backfill after this page."""
        backfill = backfill._replace(rows=backfill.rows + paged)
        if backfill.after is not None:
            self.progress = backfill.progress
            return {**cursor, **backfill.member}
        self.progress = ""
        table = self._dialect.table or "the query"
        self._context.log(f"The backfill of {table} is complete: {counted(backfill.rows, 'row')} read.")
        return cancel_backfill(cursor)

    def _is_due(self, token: Token | None, which: str, seconds: float) -> bool:
        return token is not None and 0 < seconds <= self._context.now() - float(token[which])

    def _choose(self, session: ReadSession, columns: Sequence[ResultColumn]) -> ChangeMethod:
        method = self._file or self._choose_method(session, self._dialect, columns)
        self.guarantee = method.guarantee
        return method

    def _fingerprint(
        self, method: ChangeMethod, columns: Sequence[ResultColumn], session: ReadSession
    ) -> dict[str, str]:
        options, dialect = self._options, self._dialect
        by = (options.cursor or "", options.cursor_timezone or "", options.lag_seconds, options.slack_seconds)
        return {
            "source": digest([str(options.address()), dialect.source, dialect.table, *by]),
            "columns": digest([[column.name, column.type, column.expression] for column in columns]),
            "method": type(method).__name__,
            "server": digest(method.server(session)),
        }

    def _count_unfollowed(self, method: ChangeMethod, session: ReadSession, observation: Observation) -> None:
        found = method.unfollowed(session, observation)
        sql = f"SELECT count(*) FROM {self._dialect.source} WHERE {found.condition}" if found is not None else ""
        count = session.scalar(sql, found.parameters) if found is not None else "0"
        self.notice = ""
        if count not in {None, "0"}:
            values = f"a {self._options.cursor} that is NULL, infinite or in the future"
            self.notice = f"{count} rows have {values}: only the sweep finds their changes."


def _release(method: ChangeMethod, session: ReadSession, token: Token | None, memory: _Memory | None) -> None:
    """Let the server release what it holds for durable readings, if the cursor has a state of this method."""
    if token is not None and token["fingerprint"].get("method") == type(method).__name__:
        method.release(session, memory.state if memory is not None else token["state"])
