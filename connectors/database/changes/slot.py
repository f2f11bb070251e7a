"""The method that finds changed rows of a PostgreSQL table by a logical replication slot, which has the changed keys.

The slot is read by SQL, in a transaction that ends before the transaction that reads the rows. So the rows are at least as new
as the changes, with one exception: a commit is in the log shortly before other sessions see its rows. If the first transaction
does not see such a commit yet, the changes stay in the slot, and the next reading finds them again.

Each reading advances the slot to the end of the last durable reading. The server keeps its log from this location on.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from msgspec.structs import replace

from connectors.database.changes.method import ChangeMethod, Guarantee, Observation, ReadPlan, Restriction, State
from connectors.database.changes.pgoutput import Key, UnreadableChange, changed_keys
from connectors.database.changes.row_version import RELATIONS, RowVersion, literal
from connectors.database.options import DatabaseOptions
from connectors.database.port import PLACEHOLDER, ReadSession, SqlDialect

MOST_CHANGES = 10_000
"""If the slot has more messages, everything is read, because that is faster than reading by keys."""
_MOST_BYTES = 2048
"""How many bytes of each message are fetched. If the key is not in these bytes, because large values precede it, everything
is read."""

# ``near``: a transaction id of 32 bits with the epoch of the snapshot, so that the id can be compared with the snapshot.
_CHANGES = """
WITH changes AS MATERIALIZED (
  SELECT data, number, get_byte(data, 0) AS tag, xid::text::bigint AS xid
  FROM pg_logical_slot_peek_binary_changes({slot}, {end}, NULL, 'proto_version', '1', 'publication_names', {publication})
    WITH ORDINALITY AS c(lsn, xid, data, number)
), snapshot AS (
  SELECT pg_current_snapshot() AS taken, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xmax
)
SELECT json_build_object(
  'xmin', pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
  'count', (SELECT count(*) FROM changes),
  'messages', (
    SELECT json_agg(encode(CASE tag WHEN ascii('R') THEN data ELSE substr(data, 1, {most_bytes}) END, 'hex') ORDER BY number)
    FROM changes WHERE number <= {most_changes}),
  'late', (
    SELECT json_agg(encode(substr(data, 2, 8), 'hex')) FROM changes, snapshot, LATERAL (
      SELECT (xmax >> 32 << 32) + xid AS near
    ) n WHERE tag = ascii('B') AND NOT pg_visible_in_snapshot(
      (near + (1::bigint << 32) * (CASE WHEN near > xmax + (1::bigint << 31) THEN -1
        WHEN near < xmax - (1::bigint << 31) THEN 1 ELSE 0 END))::text::xid8, taken))
)::text
"""


# The next transaction id, found by ``age``, which counts from the next id. A snapshot's xmax is not sufficient: it is the id
# after the highest id of an ended transaction, and running transactions may have higher ids.
_NEXT_ID = """
SELECT (xmax + ((3 + age('3'::xid)::bigint - xmax) % (1::bigint << 32) + (1::bigint << 32)) % (1::bigint << 32))::text
FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xmax) s
"""

_FACTS = (
    RELATIONS
    + """
, published AS (
  SELECT p.*, to_jsonb(g) ->> 'qual' AS filter
  FROM pg_publication p, LATERAL pg_get_publication_tables(p.pubname) g JOIN tree t ON t.oid = g.relid
  WHERE p.pubname = {publication}
)
SELECT json_build_object(
  'may', (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user),
  'slot', (SELECT row_to_json(s) FROM (
    SELECT coalesce(plugin, '') AS plugin, database, wal_status, confirmed_flush_lsn::text AS confirmed,
      pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint AS retained
    FROM pg_replication_slots WHERE slot_name = {slot}) s),
  'database', current_database(),
  'published', (SELECT bool_and(pubinsert AND pubupdate AND pubdelete AND pubtruncate) FROM published),
  'filtered', (SELECT bool_or(filter IS NOT NULL) FROM published),
  'relations', (SELECT json_agg(oid::bigint) FROM tree),
  'identified', (SELECT bool_and(CASE c.relreplident WHEN 'f' THEN true WHEN 'n' THEN false ELSE coalesce(
      (SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a
         ON a.attrelid = c.oid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
       WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary ELSE i.indisreplident END), '{{}}'
    ) @> ARRAY[{key}]::text[] END) FROM tree t JOIN pg_class c ON c.oid = t.oid WHERE c.relkind = 'r')
)::text
"""
)


class SlotChanges(RowVersion):
    """Reads the rows that have a key in the slot. A removed row causes a sweep, too many changes cause a whole reading."""

    observes: ClassVar[bool] = True

    def __init__(self, dialect: SqlDialect, guarantee: Guarantee, relations: frozenset[int]) -> None:
        super().__init__(dialect, guarantee)
        self._relations = relations
        self._slot = self.options.slot or ""

    def release(self, session: ReadSession, state: State) -> None:
        """Advance the slot to the end of a durable reading. Then the server may remove its older log."""
        if state.get("slot") == self._slot and "lsn" in state:
            self._advance(session, state["lsn"])

    def _advance(self, session: ReadSession, place: str) -> None:
        slot, end = literal(self._slot), literal(place)
        session.scalar(
            f"SELECT pg_replication_slot_advance({slot}, {end})::text FROM pg_replication_slots"
            f" WHERE slot_name = {slot} AND confirmed_flush_lsn < {end}::pg_lsn"
        )

    def observe(self, session: ReadSession) -> Observation:
        """Return the changes in the slot, and the location in the server's log up to which they were read.

        If more than ``slot_bytes`` of the log are unread, advance the slot and return ``skipped`` instead of changes.
        """
        slot = literal(self._slot)
        end = session.scalar("SELECT pg_current_wal_flush_lsn()::text") or ""
        confirmed = session.scalar(
            f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = {slot}"
        )
        if _number(end) - _number(confirmed or end) > self.options.slot_bytes:
            self._advance(session, end)
            return {"skipped": True}
        changes = session.scalar(
            _CHANGES.format(
                slot=slot,
                end=literal(end),
                publication=literal(self.dialect.quote(str(self.options.publication))),
                most_bytes=_MOST_BYTES,
                most_changes=MOST_CHANGES,
            )
        )
        return {"end": end, "confirmed": confirmed, **json.loads(changes or "{}")}

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:
        """See `ChangeMethod.follow`."""
        restart = self._restart(session, state, observation)
        if restart is not None:
            return ReadPlan(None, {"slot": self._slot, "until": restart})
        late = [int(place, 16) for place in observation["late"] or ()]
        end = min([_number(observation["end"]), *late])
        following = {"slot": self._slot, "lsn": f"{end >> 32:X}/{end & 0xFFFFFFFF:X}"}
        is_complete = (
            state is not None
            and state.get("slot") == self._slot
            and "lsn" in state
            and _number(observation["confirmed"]) <= _number(state["lsn"])  # another program did not advance the slot
        )
        if not is_complete or observation["count"] > MOST_CHANGES:
            return ReadPlan(None, following)
        try:
            messages = map(bytes.fromhex, observation["messages"] or ())
            keys = changed_keys(messages, self.options.keys, self._relations)
        except (UnreadableChange, UnicodeDecodeError):
            return ReadPlan(None, following)
        if keys.truncated:
            return ReadPlan(None, following)
        finds_removed = self.options.deletes == "remove"
        has_removed = finds_removed and not self._has_all(session, keys.removed)
        return ReadPlan(self._restriction(keys.written), following, sweep=has_removed)

    def _restart(self, session: ReadSession, state: State | None, observation: Observation) -> int | None:
        """Return a transaction id: every lower transaction must end before the slot can be used. None: it can be used now.

        The skipped log may have changes that this whole reading does not see yet. So readings are whole until every
        transaction that ran when the log was skipped has ended.
        """
        if observation.get("skipped"):
            return int(session.scalar(_NEXT_ID) or "0")
        until = state.get("until") if state is not None else None
        return until if until is not None and observation["xmin"] < until else None

    def _has_all(self, session: ReadSession, keys: frozenset[Key]) -> bool:
        """Return whether the table has a row for each key. A row that was removed may have been inserted again."""
        found = self._restriction(keys)
        rest = f"SELECT count(*) FROM {self.dialect.source} WHERE {found.condition}"
        return session.scalar(rest, found.parameters) == str(len(keys))

    def _restriction(self, keys: frozenset[Key]) -> Restriction:
        if not keys:
            return Restriction("false")
        columns = ", ".join(map(self.dialect.quote, self.options.keys))
        row = f"({', '.join([PLACEHOLDER] * len(self.options.keys))})"
        return Restriction(
            f"({columns}) IN ({', '.join([row] * len(keys))})", tuple(value for key in sorted(keys) for value in key)
        )


def _number(place: str) -> int:
    """Return the number of a location in the server's log, such as ``0/15A70D0``."""
    high, low = place.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def choose_slot(session: ReadSession, dialect: SqlDialect, without: ChangeMethod) -> ChangeMethod:
    """Return the method that uses the slot. If the slot can't be used, return ``without``, and add the reason to it."""
    options = dialect.options
    if session.scalar("SELECT pg_is_in_recovery()::text") == "true":
        problem, facts = "A standby has no slot: read from the primary", dict[str, Any]()
    else:
        sql = _FACTS.format(
            table=literal(dialect.table),
            slot=literal(str(options.slot)),
            publication=literal(str(options.publication)),
            key=", ".join(map(literal, options.keys)),
        )
        facts = json.loads(session.scalar(sql) or "{}")
        problem = _problem(facts, options)
    if problem:
        sentence = f"The slot {options.slot} is not used. {problem}; 'ingestd database sql' prints the statements."
        without.guarantee = replace(without.guarantee, improvement=sentence)
        return without
    retained = int(facts["slot"]["retained"])
    much = (
        f"The slot retains {retained:,} bytes of the server's log, more than slot_bytes. If so much is unread, the log is skipped"
        " and the table is read whole. A transaction that is open for long retains log, too. max_slot_wal_keep_size limits it."
        if retained > options.slot_bytes
        else ""
    )
    guarantee = Guarantee(
        method="slot",
        sentence=(
            "Each reading finds every change, also removed rows and changed keys, because the slot holds the keys of all"
            " committed changes. A removed row starts a sweep. The regular sweeps remain."
        ),
        improvement=much,
    )
    return SlotChanges(dialect, guarantee, frozenset(facts["relations"]))


def _problem(facts: dict[str, Any], options: DatabaseOptions) -> str:
    """Return why the slot can't be used, and the remedy; empty if the slot can be used."""
    slot = facts["slot"] or {"plugin": "", "database": "", "wal_status": ""}
    is_own = slot["plugin"] == "pgoutput" and slot["database"] == facts["database"]
    publication = f"The publication {options.publication}"
    lost = "The server removed log that it held (max_slot_wal_keep_size): drop the slot and create it again"
    identity = "The replica identity of the table does not hold key: set it with ALTER TABLE … REPLICA IDENTITY"
    checks = (
        (facts["may"], "The user lacks REPLICATION, which reading a slot needs"),
        (facts["slot"], "There is no such slot: create it"),
        (is_own, "It is no slot of pgoutput in this database"),
        (slot["wal_status"] != "lost", lost),
        (facts["published"], f"{publication} does not publish all changes of the table"),
        (not facts["filtered"], f"{publication} has a row filter, which hides changes"),
        (facts["identified"], identity),
    )
    return next((sentence for is_met, sentence in checks if not is_met), "")
