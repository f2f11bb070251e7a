"""The transactions that run on a server, and the server's clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from connectors.database.port import ReadSession

# ``at`` is the start of this transaction: it is earlier than the reading of the locks. A prepared transaction has no process.
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

# The time of a statement is fixed first. Then the statement may wait for a metadata lock, before its transaction is listed. So
# statements are listed, too. A transaction's id changes with its first write, so connection and start time identify it.
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
"""InnoDB makes a new list of transactions only if no client has read the list for 0.1 s. Otherwise it returns the old list."""
_LIST_RETRIES = 4


class _InnodbList:
    """The running transactions of one InnoDB server. All readers in this process share the list.

    If each reader requested a list, the requests would prevent the server from making a new list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read = 0.0
        self._found: Mapping[str, Any] | None = None

    def observe(self, session: ReadSession) -> Mapping[str, Any]:
        """Return the running transactions, from a list that was read less than ``_LIST_SECONDS`` ago.

        If other clients read the server's list too often, the list may be old. Then ``current`` is False.
        """
        with self._lock:
            if self._found is not None and time.monotonic() - self._read < _LIST_SECONDS:
                return self._found
            found = self._listed(session)
            for _ in range(_LIST_RETRIES):
                if found["current"]:
                    break
                time.sleep(_LIST_SECONDS)  # no signal shows that the server can make a new list
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
"""The transaction list of each server."""


def observe_postgresql(session: ReadSession) -> Mapping[str, Any]:
    """Return the server's clock in microseconds since the epoch, and the running transactions. This needs no privilege.

    If ``current`` is False, the list may lack new transactions. An older transaction that is not listed has ended.
    """
    found = json.loads(session.scalar(_POSTGRESQL) or "{}")
    return {**found, "at": int(found["at"]), "current": True}


def observe_innodb(session: ReadSession) -> Mapping[str, Any]:
    """Return clock and running transactions of InnoDB, like `observe_postgresql`. This needs the PROCESS privilege."""
    server = session.scalar(_INNODB_SERVER) or ""
    return _LISTS.setdefault(server, _InnodbList()).observe(session)


def remaining(before: Sequence[str], observation: Mapping[str, Any]) -> list[str]:
    """Return the transactions of ``before`` that may still run.

    A transaction that was prepared has no connection any more, so it is listed under a different name. If a transaction is no
    longer listed, any prepared transaction may be this transaction.
    """
    running, detached = set(observation["running"]), set(observation["detached"])
    left = set(before) & running
    return sorted(left | detached if len(left) < len(set(before)) else left)
