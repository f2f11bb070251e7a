"""The transactions that run on a server, and the server's clock."""

from __future__ import annotations

import json
import threading
import time
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
  'own', CONNECTION_ID(),
  'transactions', (
    SELECT JSON_ARRAYAGG(JSON_ARRAY(
      trx_mysql_thread_id,
      CONCAT('transaction ', trx_mysql_thread_id, ' ', trx_started, IF(trx_mysql_thread_id = 0, CONCAT(' ', trx_id), ''))
    )) FROM information_schema.innodb_trx
  ),
  'statements', (
    SELECT JSON_ARRAYAGG(CONCAT('statement ', id, ' ', query_id)) FROM information_schema.processlist
    WHERE id <> CONNECTION_ID() AND command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Connect')
  )
)
"""
_INNODB_SERVER = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir)"
_LIST_SECONDS = 0.12
"""InnoDB lists its transactions anew only if no client has read the list for 0.1 s; until then it returns the same old list."""
_LIST_RETRIES = 4


class _InnodbList:
    """The transactions of one InnoDB server, for all readers of this process.

    If each reader had its own list, no reader would get a new list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read = 0.0
        self._found: Mapping[str, Any] | None = None

    def observe(self, session: ReadSession) -> Mapping[str, Any]:
        """Return a list that is younger than ``_LIST_SECONDS``.

        If other clients read it all the time, return an old list that is marked as old.
        """
        with self._lock:
            if self._found is not None and time.monotonic() - self._read < _LIST_SECONDS:
                return self._found
            found = self._listed(session)
            for _ in range(_LIST_RETRIES):
                if found["current"]:
                    break
                time.sleep(_LIST_SECONDS)  # the server gives no signal
                found = {**self._listed(session), "at": found["at"]}
            self._found = found if found["current"] else None
            return found

    def _listed(self, session: ReadSession) -> Mapping[str, Any]:
        read = json.loads(session.scalar(_INNODB) or "{}")
        self._read = time.monotonic()
        transactions = read["transactions"] or []
        others = [(thread, holder) for thread, holder in transactions if thread != read["own"]]
        return {
            "at": int(read["at"]),
            "running": [holder for _, holder in others] + (read["statements"] or []),
            "detached": [holder for thread, holder in others if thread == 0],
            # If a list lacks the transaction of this session, the list was made before that transaction began.
            "current": len(others) < len(transactions),
        }


_LISTS: dict[str, _InnodbList] = {}
"""The list of each server, which all readers of the process share."""


def observe_postgresql(session: ReadSession) -> Mapping[str, Any]:
    """Return the clock in microseconds since the epoch, and the running transactions; it needs no right.

    A list that is not ``current`` shows which transactions have ended, but not which transactions have begun.
    """
    found = json.loads(session.scalar(_POSTGRESQL) or "{}")
    return {**found, "at": int(found["at"]), "current": True}


def observe_innodb(session: ReadSession) -> Mapping[str, Any]:
    """Return clock and running transactions of InnoDB; this needs the PROCESS privilege."""
    server = session.scalar(_INNODB_SERVER) or ""
    return _LISTS.setdefault(server, _InnodbList()).observe(session)


def remaining(before: Sequence[str], observation: Mapping[str, Any]) -> list[str]:
    """Return the transactions of ``before`` that may still run.

    A transaction that is prepared loses its connection and gets another name. So if a transaction has vanished, it may be any
    prepared transaction that runs now.
    """
    running, detached = set(observation["running"]), set(observation["detached"])
    left = set(before) & running
    return sorted(left | detached if len(left) < len(set(before)) else left)
