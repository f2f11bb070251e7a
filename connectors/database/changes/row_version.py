"""The method that finds changed rows of a PostgreSQL table by ``xmin``: the id of the transaction that wrote a row version.

If an id is below a snapshot's ``pg_snapshot_xmin``, its transaction had ended before the snapshot, and all rows that the
transaction wrote were visible. A row that becomes visible later has an id that is not below ``pg_snapshot_xmin``. This is also
true for prepared transactions. It is true for subtransactions, because they get their ids after the main transaction. A
transaction without an id gets a higher id at its first write. ``pg_visible_in_snapshot`` can't replace this comparison, because
it does not consider subtransactions.

A row has 32 bits of the id, also after VACUUM froze the row. ``age`` counts back from the next id. So it is correct even if
ids wrap around, if the last reading is less than 2³¹ ids ago. An old row with 32 bits that look recent is read again.
"""

from __future__ import annotations

import json
from typing import ClassVar

from connectors.database.changes.method import ChangeMethod, Guarantee, Observation, ReadPlan, Restriction, State
from connectors.database.port import ReadSession

_WINDOW = (1 << 31) - (1 << 24)
"""After this number of transaction ids, a row's age can be ambiguous. A reserve for ids during a reading is subtracted."""

RELATIONS = """
WITH RECURSIVE tree(oid) AS (
  SELECT to_regclass({table})::oid
  UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree t ON i.inhparent = t.oid
)
"""

_IS_SUITABLE = (
    RELATIONS
    + """
SELECT (coalesce(bool_and(c.relkind = 'p' OR (c.relkind IN ('r', 'm') AND a.amname = 'heap')), false)
  AND current_setting('server_version_num')::int >= 130000 AND has_table_privilege(to_regclass({table}), 'SELECT'))::text
FROM tree t JOIN pg_class c ON c.oid = t.oid LEFT JOIN pg_am a ON a.oid = c.relam
"""
)

# These facts can change the table without new row versions: the files of the relations (TRUNCATE, VACUUM FULL), the set of
# partitions, enumeration labels, defaults and generated columns.
_SERVER = (
    RELATIONS
    + """
SELECT json_build_object(
  'server', (SELECT system_identifier::text FROM pg_control_system()),
  'timeline', (SELECT timeline_id FROM pg_control_checkpoint()),
  'database', current_database(),
  'relations', (SELECT md5(string_agg(t.oid || ':' || coalesce(pg_relation_filenode(t.oid), 0), ',' ORDER BY t.oid)) FROM tree t),
  'columns', (
    SELECT md5(string_agg(concat_ws(' ', a.attnum, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
      a.attgenerated, pg_get_expr(d.adbin, d.adrelid),
      (SELECT string_agg(quote_literal(e.enumlabel), ',' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid)
    ), ';' ORDER BY a.attnum))
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped
  )
)::text
"""
)

_SNAPSHOT = """
SELECT json_build_object('xmin', pg_snapshot_xmin(s)::text::bigint, 'xmax', pg_snapshot_xmax(s)::text::bigint)::text
FROM pg_current_snapshot() s
"""

GUARANTEE = Guarantee(
    method="xmin",
    sentence=(
        "Each reading finds every inserted and updated row, in whatever order transactions commit,"
        " because PostgreSQL marks each row with the transaction that wrote it. Deleted rows are found by the sweep."
    ),
)


class RowVersion(ChangeMethod):
    """Reads the rows that were written since the last reading began."""

    finds_every_change: ClassVar[bool] = True

    def server(self, session: ReadSession) -> str:
        """See `ChangeMethod.server`."""
        return session.scalar(_SERVER.format(table=literal(self.dialect.table))) or ""

    def follow(self, session: ReadSession, state: State | None, observation: Observation) -> ReadPlan:  # noqa: ARG002
        """See `ChangeMethod.follow`. The ids are read in the same snapshot as the rows."""
        now = json.loads(session.scalar(_SNAPSHOT) or "{}")
        following = {"xmin": now["xmin"]}
        if state is None:
            return ReadPlan(None, following)
        bound = int(state["xmin"])
        # If the stored id is higher than the next id, the server was restored to an earlier state.
        if not 0 <= now["xmax"] - bound < _WINDOW:
            return ReadPlan(None, following)
        return ReadPlan(Restriction(f"age(xmin) BETWEEN 0 AND age('{bound % (1 << 32)}'::xid)"), following)


def is_suitable(session: ReadSession, table: str) -> bool:
    """Return whether every row of a relation has a transaction id: it is a table or materialized view, for example."""
    return session.scalar(_IS_SUITABLE.format(table=literal(table))) == "true"


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
