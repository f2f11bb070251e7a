"""A check that the PostgreSQL server permits the connections of all hosts of a service.

An admitted host holds a shared advisory lock. The second key of the lock is the host's number of connections, which other hosts
can read.
"""

from __future__ import annotations

import asyncio

import psycopg

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.port import Row, StorageUnusable

_SERVICE = 0x776F726B  # "work": the first key of the locks
_ADMISSION = 0x776F726C
_PERMITTED = """
SELECT least(current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
             - coalesce(current_setting('reserved_connections', true), '0')::bigint,
             nullif(datconnlimit, -1), nullif(rolconnlimit, -1))
FROM pg_database, pg_roles WHERE datname = current_database() AND rolname = current_user
"""
_HELD = """
SELECT coalesce(sum(objid::bigint), 0), count(*) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %s AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


_ADVICE = (
    "Raise max_connections there (or the limit of the role or the database), "
    "or lower WORKSPACED_STREAMS or WORKSPACED_READERS here."
)


class Room:
    """The connections of one process. The process calls `claim` each time that it has opened its listening connection."""

    def __init__(self, needed: int) -> None:
        """``needed``: the largest number of connections that the process opens."""
        self._needed = needed
        self._tried = asyncio.Event()
        self._problem: UnavailableProblem | StorageUnusable | None = None
        self._is_admitted = False

    async def claim(self, connection: psycopg.AsyncConnection[Row]) -> None:
        """Reserve the process's connections as long as ``connection`` is open. An admitted host is never refused later.

        Raises:
            UnavailableProblem: the server permits fewer connections, or other hosts hold too many.
        """
        if self._is_admitted:
            await self._hold(connection)
            return
        try:
            await self._admit(connection)
        except StorageUnusable as error:
            self.failed(error)
            raise UnavailableProblem("no_connections_left", str(error), retry_seconds=5) from error
        self._is_admitted, self._problem = True, None
        self._tried.set()

    def failed(self, problem: UnavailableProblem | StorageUnusable) -> None:
        """Record why the process is not admitted. A final reason (StorageUnusable) is not replaced."""
        if not self._is_admitted and not isinstance(self._problem, StorageUnusable):
            self._problem = problem
        self._tried.set()

    async def require(self) -> None:
        """Wait for the first attempt. Raise the problem that `failed` recorded, unless the process was admitted."""
        await self._tried.wait()
        if self._problem:
            raise self._problem

    async def _admit(self, connection: psycopg.AsyncConnection[Row]) -> None:
        """Check the limits and reserve the connections, under a lock that admits one host at a time."""
        async with connection.transaction():
            await connection.execute("SET LOCAL lock_timeout = 2000")  # a frozen host may hold the lock
            await connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [_ADMISSION])
            (permitted,) = await _one(connection, _PERMITTED)
            held, hosts = await _one(connection, _HELD, [_SERVICE])
            begin = f"This host opens up to {self._needed} connections to PostgreSQL, which permits {permitted}"
            if self._needed > permitted:
                raise StorageUnusable(f"{begin}. {_ADVICE}")
            if self._needed + held > permitted:
                others = "another host holds" if hosts == 1 else f"{hosts} other hosts hold"
                sentence = f"{begin}; {others} {held} of them. {_ADVICE}"
                raise UnavailableProblem("no_connections_left", sentence, retry_seconds=5)
            await self._hold(connection)

    async def _hold(self, connection: psycopg.AsyncConnection[Row]) -> None:
        await connection.execute("SELECT pg_advisory_lock_shared(%s, %s)", [_SERVICE, self._needed])


async def _one(connection: psycopg.AsyncConnection[Row], statement: str, values: list[int] | None = None) -> Row:
    row = await (await connection.execute(statement.encode(), values)).fetchone()
    if row is None:
        raise LookupError("the server knows neither this database nor this role")
    return row
