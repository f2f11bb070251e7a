"""The sequence of readings: whole ones and those of changes, their cursor, and the sweep.

The cursor holds the state of the method, a fingerprint of what is read, and the time of the last whole reading. The fingerprint
covers the address, the query or table, the cursor column, the columns and the server. After a change of any of these the cursor
means nothing, so everything is read.

A sweep is a whole reading. The intake compares it with the mirror and removes what is missing. That is simpler than a
comparison of keys, and it also finds rows that changed without a sign.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from connectors.database.changes.known_rows import KnownRows, hash_rows
from connectors.database.changes.method import ChangeMethod, ChangeSource, Guarantee, Observation, Restriction, State
from connectors.database.changes.selection import choose_method
from connectors.database.changes.whole import DataVersion
from connectors.database.port import Frame, ReadSession, ResultColumn, SqlDialect
from ingestd.sdk import Cursor

_VERSION = 1
_KEPT_SECONDS = 3600
"""A cursor with an older state is stored again although nothing changed, so that a restart does not read more."""

_PARTS: Mapping[str, str] = {
    "source": "the address, the table or query, or the cursor column and its settings",
    "columns": "the columns",
    "method": "the way in which changes are found",
    "server": "the server, or the definition of the table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """Rows of one reading.

    ``frame``: the rows. ``whole``: the reading holds every row, so that a missing row was removed. ``last``: this is the last
    frame. ``cursor``: the cursor after the reading; empty before the last frame, so that an interrupted one is repeated.
    """

    frame: Frame
    whole: bool
    cursor: Cursor
    last: bool


_Token: TypeAlias = Mapping[str, Any]


class _Memory(NamedTuple):
    """What is known beyond the durable cursor of the reading ``reading``; it was not stored because no row was new."""

    reading: str
    state: State
    known: KnownRows
    version: object | None = None


class ChangeReader:
    """Reads a source again and again. It belongs to one thread, except `guarantee` and `notice`.

    ``open_session`` opens a session of a database with ``dialect``. ``columns`` returns the columns to read. ``identity`` is the
    address without a password. ``sweep_seconds``: the interval of whole readings; 0: only when needed. ``report`` writes a
    sentence for operators. ``path`` is the file of a SQLite database. ``choose`` chooses the method for a server.
    """

    def __init__(
        self,
        open_session: Callable[[], AbstractContextManager[ReadSession]],
        dialect: SqlDialect,
        source: ChangeSource,
        *,
        identity: str,
        sweep_seconds: float,
        columns: Callable[[ReadSession], Sequence[ResultColumn]],
        now: Callable[[], float],
        report: Callable[[str], None],
        path: Path | None = None,
        choose: Callable[[ReadSession, SqlDialect, ChangeSource, Sequence[ResultColumn]], ChangeMethod] = choose_method,
    ) -> None:
        self._open = open_session
        self._dialect = dialect
        self._source = source
        self._identity = identity
        self._sweep_seconds = sweep_seconds
        self._columns = columns
        self._now = now
        self._report = report
        self._choose_method = choose
        self._file = DataVersion(source, dialect, path) if path is not None else None
        self._memory: _Memory | None = None
        self._forget = False
        self._forgotten = ""
        self.guarantee: Guarantee | None = None
        """The guarantee of the method that was chosen last; None before the first reading."""
        self.notice = ""
        """A sentence about rows of which only the sweep finds the changes; empty if there are none."""

    def reset(self) -> None:
        """Have the next reading be whole."""
        self._forget, self._forgotten = True, ""

    def close(self) -> None:
        """Close what is open between readings."""
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
        token = dict(cursor) if cursor is not None and cursor.get("changes") == _VERSION else None
        if token is not None and self._forget and token["reading"] == self._forgotten:
            self._forget = False  # the whole reading that was asked for is durable
        memory = (
            self._memory if token is not None and self._memory and self._memory.reading == token["reading"] else None
        )
        version = self._file.version() if self._file is not None else None
        if memory is not None and version is not None and version == memory.version and not self._forget:
            return
        with ExitStack() as stack:
            session = stack.enter_context(self._open())
            columns = self._columns(session)
            method = self._choose(session, columns)
            observation: Observation = {}
            if method.observes:
                observation = method.observe(session)
                stack.close()
                session = stack.enter_context(self._open())
            fingerprint = self._fingerprint(method, columns, session)
            state = self._state(token, fingerprint, memory)
            step = method.follow(session, state, observation)
            cursor_after: dict[str, Any] = {"changes": _VERSION, "fingerprint": fingerprint, "state": dict(step.state)}
            if not method.remembers:
                yield from self._all(session, columns, cursor_after)
                return
            now = self._now()
            cursor_after |= {"reading": uuid.uuid4().hex[:16], "at": now}
            if token is None or step.restriction is None or self._forget or self._is_sweep_due(token, now):
                cursor_after["swept"] = now
                self._count_unfollowed(method, session, observation)
                following = _Memory(cursor_after["reading"], step.state, KnownRows(), version)
                if self._forget:
                    self._forgotten = following.reading
                yield from self._all(session, columns, cursor_after, following)
            else:
                cursor_after["swept"] = token["swept"]
                frames = self._restricted(session, columns, step.restriction)
                yield from self._changes(frames, cursor_after, token, memory)

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
        self, session: ReadSession, columns: Sequence[ResultColumn], cursor: _Token, following: _Memory | None = None
    ) -> Iterator[ReadRows]:
        """Yield every row. ``following``: the memory after the reading, which then holds its rows."""
        held: ReadRows | None = None
        for frame in session.frames(columns, self._source.source):
            if held is not None and not frame.records.height:
                continue
            if following is not None and following.version is None:
                following.known.add(hash_rows(frame.records))
            if held is not None:
                yield held
            held = ReadRows(frame=frame, whole=True, cursor={}, last=False)
        if held is not None:
            self._memory = following
            yield replace(held, cursor=cursor, last=True)

    def _restricted(
        self, session: ReadSession, columns: Sequence[ResultColumn], restriction: Restriction
    ) -> Iterator[Frame]:
        where = f"WHERE {restriction.condition}"
        return session.frames(columns, self._source.source, rest=where, parameters=restriction.parameters)

    def _changes(
        self, frames: Iterator[Frame], cursor: _Token, token: _Token, memory: _Memory | None
    ) -> Iterator[ReadRows]:
        """Yield the rows that the reading before did not have; nothing if there are none and the cursor is not old."""
        before, known = memory.known if memory is not None else KnownRows(), KnownRows()
        held: ReadRows | None = None
        for frame in frames:
            hashes = hash_rows(frame.records)
            known.add(hashes)
            fresh = _select(frame, before.select_new(hashes))
            reading = ReadRows(frame=fresh, whole=False, cursor={}, last=False)
            if held is None or not held.frame.records.height:
                held = reading
            elif fresh.records.height:
                yield held
                held = reading
        is_old = cursor["at"] - token["at"] >= _KEPT_SECONDS
        if held is not None and (held.frame.records.height or is_old):
            self._memory = _Memory(cursor["reading"], cursor["state"], known)
            yield replace(held, cursor=cursor, last=True)
        else:
            self._memory = _Memory(token["reading"], cursor["state"], known)

    def _is_sweep_due(self, token: _Token, now: float) -> bool:
        return 0 < self._sweep_seconds <= now - float(token["swept"])

    def _choose(self, session: ReadSession, columns: Sequence[ResultColumn]) -> ChangeMethod:
        method = self._file or self._choose_method(session, self._dialect, self._source, columns)
        self.guarantee = method.guarantee
        return method

    def _fingerprint(
        self, method: ChangeMethod, columns: Sequence[ResultColumn], session: ReadSession
    ) -> dict[str, str]:
        return {
            "source": _digest([self._identity, *astuple(self._source)]),
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


def _select(frame: Frame, mask: pl.Series) -> Frame:
    """Return the rows of a frame where the mask is true."""
    if mask.all():
        return frame
    places = {place: row for row, place in enumerate(mask.arg_true().to_list())} if frame.faults else {}
    faults = {places[at]: fault for at, fault in frame.faults.items() if at in places}
    return Frame(records=frame.records.filter(mask), faults=faults)


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=12).hexdigest()
