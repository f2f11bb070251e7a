"""The transactions that run on a server, and the server's clock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from connectors.database.port import ReadSession

# The clock is the begin of this transaction, which is before the locks are read. A prepared transaction has no process.
_POSTGRESQL = """
SELECT json_build_object(
  'at', (extract(epoch FROM now()) * 1000000)::bigint,
  'running', coalesce(json_agg(DISTINCT holder) FILTER (WHERE holder IS NOT NULL), '[]'),
  'detached', coalesce(json_agg(DISTINCT holder) FILTER (WHERE pid IS NULL AND holder IS NOT NULL), '[]')
)::text
FROM (
  SELECT pid, coalesce(virtualxid, 'id ' || transactionid::text) AS holder
  FROM pg_locks
  WHERE granted AND mode = 'ExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid()
    AND (locktype = 'virtualxid' OR (locktype = 'transactionid' AND pid IS NULL))
) l
"""

# A statement fixes its time before its transaction is listed, and then may wait for a metadata lock: statements count, too. The
# id of a transaction changes with its first write, so it is identified by its connection and begin.
_INNODB = """
SELECT JSON_OBJECT(
  'at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
  'running', (
    SELECT JSON_ARRAYAGG(holder) FROM (
      SELECT CONCAT('transaction ', trx_mysql_thread_id, ' ', trx_started, IF(trx_mysql_thread_id = 0, CONCAT(' ', trx_id), ''))
        AS holder
      FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID()
      UNION SELECT CONCAT('statement ', id, ' ', query_id) FROM information_schema.processlist
      WHERE id <> CONNECTION_ID() AND command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Connect')
    ) h
  ),
  'detached', (
    SELECT JSON_ARRAYAGG(CONCAT('transaction ', trx_mysql_thread_id, ' ', trx_started, CONCAT(' ', trx_id)))
    FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = 0
  )
)
"""


def observe_postgresql(session: ReadSession) -> Mapping[str, Any]:
    """Return the clock in microseconds since the epoch, and the running transactions; it needs no right."""
    return _parsed(session.scalar(_POSTGRESQL))


def observe_innodb(session: ReadSession) -> Mapping[str, Any]:
    """Return the same of InnoDB; it needs the PROCESS privilege."""
    return _parsed(session.scalar(_INNODB))


def remaining(before: Sequence[str], observation: Mapping[str, Any]) -> list[str]:
    """Return those transactions of ``before`` that may still run.

    A transaction that is prepared loses its connection and gets another name. So if a transaction has vanished, it may be
    any prepared one that runs now.
    """
    running, detached = set(observation["running"]), set(observation["detached"])
    left = set(before) & running
    return sorted(left | detached if len(left) < len(set(before)) else left)


def _parsed(text: str | None) -> Mapping[str, Any]:
    found = json.loads(text or "{}")
    return {"at": int(found["at"]), "running": found["running"] or [], "detached": found["detached"] or []}
