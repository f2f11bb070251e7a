"""Rows of a MariaDB table by the binary log, which has the keys of all committed changes.

The transaction of the rows begins first. MariaDB reports the place of its snapshot in the log: exactly the transactions before
it are visible. So the log is read up to this place, and the last change of each key says whether its row exists.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from connectors.database.changes.binlog_events import LoggedTable, LogKey, LogPlace, LogReader
from connectors.database.changes.method import (
    ChangeMethod,
    ChangeSource,
    Guarantee,
    Observation,
    ReadPlan,
    Restriction,
    State,
)
from connectors.database.port import PLACEHOLDER, LogDatabase, LogUnreadable, ReadSession, SqlDialect

MOST_KEYS = 10_000
"""With more keys than this, a whole reading costs less than one by keys."""
_MOST_BYTES = 256 * 1024 * 1024
"""More log than this since the last reading is not read: a whole reading costs less."""

_STATUS = "SELECT variable_value FROM information_schema.session_status WHERE variable_name = '{}'"


class BinlogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The binary log. ``key``: the columns that identify a row. ``finds_removed``: a removed row requires a whole reading."""

    database: LogDatabase
    key: tuple[str, ...]
    finds_removed: bool


class BinlogChanges(ChangeMethod):
    """Reads the rows with the keys in the log. A removed row, a statement that names the table or a gap are a whole reading.

    ``definition`` identifies the server and the columns of the table.
    """

    finds_every_change: ClassVar[bool] = True

    def __init__(
        self,
        source: ChangeSource,
        dialect: SqlDialect,
        guarantee: Guarantee,
        settings: BinlogSettings,
        *,
        table: LoggedTable,
        definition: str,
    ) -> None:
        super().__init__(source, dialect, guarantee)
        self._settings = settings
        self._table = table
        self._definition = definition

    def server(self, session: ReadSession) -> str:  # noqa: ARG002 - it was read for the choice
        """See `ChangeMethod.server`."""
        return self._definition

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`."""
        file = session.scalar(_STATUS.format("BINLOG_SNAPSHOT_FILE"))
        at = session.scalar(_STATUS.format("BINLOG_SNAPSHOT_POSITION"))
        end = LogPlace(file or "", int(at or 0))
        if state is None or "gtid" not in state:
            return ReadPlan(None, _state(session, end))
        begin = LogPlace(state["file"], state["position"])
        if begin == end:
            return ReadPlan(Restriction("false"), state)
        if _gtids(session, begin) != frozenset(state["gtid"].split(",")):
            return self._whole(session, end, "the server has not all of the log since the last reading")
        reader = LogReader(self._table, state["gtid"], end, most_keys=MOST_KEYS, most_bytes=_MOST_BYTES)
        try:
            with self._settings.database.log(state["gtid"]) as events:
                keys = reader.read(events)
        except LogUnreadable as reason:
            return self._whole(session, end, str(reason))
        following = {"gtid": keys.position, "file": end.file, "position": end.position}
        if self._settings.finds_removed and keys.removed:
            return ReadPlan(None, following)
        return ReadPlan(self._restriction(keys.written), following)

    def _whole(self, session: ReadSession, end: LogPlace, reason: str) -> ReadPlan:
        self.guarantee = replace(self.guarantee, improvement=f"The last reading was whole, because {reason}.")
        return ReadPlan(None, _state(session, end))

    def _restriction(self, keys: frozenset[LogKey]) -> Restriction:
        if not keys:
            return Restriction("false")
        columns = ", ".join(map(self.dialect.quote, self._settings.key))
        row = f"({', '.join([self.dialect.placeholder()] * len(self._settings.key))})"
        return Restriction(
            f"({columns}) IN ({', '.join([row] * len(keys))})", tuple(value for key in sorted(keys) for value in key)
        )


def _gtids(session: ReadSession, place: LogPlace) -> frozenset[str] | None:
    """Return the GTIDs of a place; None: the server has no such file. A server that lost its log has other ones there."""
    gtids = f"SELECT BINLOG_GTID_POS({PLACEHOLDER}, {place.position})"
    found = session.scalar(gtids, (place.file,)) if place.file else None
    return frozenset(found.split(",")) if found is not None else None


def _state(session: ReadSession, end: LogPlace) -> State:
    """Return the state at a place. Without its GTIDs the next reading is whole, too."""
    gtids = _gtids(session, end)
    if gtids is None:
        return {}
    return {"gtid": ",".join(sorted(gtids)), "file": end.file, "position": end.position}
