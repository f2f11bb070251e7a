"""The choice of a logical replication slot, or of the method without it, with the reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from connectors.database.changes.method import ChangeMethod, ChangeSource, Guarantee
from connectors.database.changes.row_version import RELATIONS, literal
from connectors.database.changes.selection import choose_method
from connectors.database.changes.slot import SlotChanges, SlotSettings
from connectors.database.port import ReadSession, ResultColumn, SqlDialect

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
      (SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
       WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary ELSE i.indisreplident END), '{{}}'
    ) @> ARRAY[{key}]::text[] END) FROM tree t JOIN pg_class c ON c.oid = t.oid WHERE c.relkind = 'r')
)::text
"""
)


def choose_method_with_slot(
    session: ReadSession,
    dialect: SqlDialect,
    source: ChangeSource,
    columns: Sequence[ResultColumn],
    *,
    settings: SlotSettings,
) -> ChangeMethod:
    """Return the method of the slot, or the one without it, with a sentence on why the slot can't be used.

    Raises:
        SourceBroken: there is no method without the slot.
    """
    without = choose_method(session, dialect, source, columns)
    if session.scalar("SELECT pg_is_in_recovery()::text") == "true":
        problem, facts = "A standby has no slot: read from the primary", dict[str, Any]()
    else:
        key = ", ".join(map(literal, settings.key))
        names = {"slot": literal(settings.slot), "publication": literal(settings.publication), "key": key}
        facts = json.loads(session.scalar(_FACTS.format(table=literal(source.table), **names)) or "{}")
        problem = _problem(facts, settings)
    if problem:
        sentence = f"The slot {settings.slot} is not used. {problem}; 'ingestd database sql' prints the statements."
        without.guarantee = replace(without.guarantee, improvement=sentence)
        return without
    retained = int(facts["slot"]["retained"])
    much = (
        f"The slot retains {retained:,} bytes of the server's log, more than slot_bytes. If that much is unread, it is skipped,"
        " and the table is read whole. A transaction that is open for long retains log, too. max_slot_wal_keep_size limits it."
        if retained > settings.most_bytes
        else ""
    )
    guarantee = Guarantee(
        method="slot",
        sentence=(
            "Each reading finds every change, also removed rows and changed keys, because the slot holds the keys of all"
            " committed changes. A removed row starts a sweep. The sweep remains."
        ),
        improvement=much,
    )
    return SlotChanges(source, dialect, guarantee, settings, frozenset(facts["relations"]))


def _problem(facts: dict[str, Any], settings: SlotSettings) -> str:
    """Return why the slot can't be used, and the remedy; empty if it can."""
    slot = facts["slot"] or {"plugin": "", "database": "", "wal_status": ""}
    is_own = slot["plugin"] == "pgoutput" and slot["database"] == facts["database"]
    publication = f"The publication {settings.publication}"
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
