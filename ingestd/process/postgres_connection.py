"""Connections to PostgreSQL that limit each wait for a server, and detect an unreplicated commit. Needs psycopg."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.pq.abc import PGconn

from ingestd.process.postgres_address import PostgresAddress

Row: TypeAlias = tuple[Any, ...]

LOOK_SECONDS = 6.0
"""If the server sends nothing for this time while a statement runs, `Watched.is_worth_waiting` is called."""
SILENT_SECONDS = 30.0
"""If the server sends nothing for this time while a statement runs, the connection is closed, even if logins succeed."""

SERVER_WAITS = """
SELECT set_config('tcp_user_timeout', %(tcp_user_timeout)s, false),
       set_config('tcp_keepalives_idle', %(keepalives_idle)s, false),
       set_config('tcp_keepalives_interval', %(keepalives_interval)s, false)
"""
"""Sets the same limits for the server's waits as for the client's waits; the parameters come from the address.

Otherwise a transaction of a client that no longer responds could hold its locks for longer.
"""
DURABLE_COMMITS = """
set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                 ELSE current_setting('synchronous_commit') END, false),
set_config('client_min_messages', 'warning', false)
"""
"""Settings of a session, as expressions of a SELECT. A commit then survives a loss of power; stricter settings stay.

The server also sends a warning if a commit was not replicated.
"""


class ServerSilent(psycopg.OperationalError):
    """The server no longer responds; the connection is closed."""


class Watched:
    """Closes a connection when its server no longer responds."""

    pgconn: PGconn
    silent_seconds = SILENT_SECONDS
    on_silence: Callable[[], None] = staticmethod(lambda: None)
    """Called before the connection is closed."""

    def is_worth_waiting(self, silent: float) -> bool:
        """Return whether to wait longer for a server that has sent nothing for ``silent`` seconds."""
        return silent < self.silent_seconds

    def watched(self, gen: PQGen[RV]) -> PQGen[RV]:
        """Yield what the generator of psycopg yields. Psycopg sends the ready state of the socket, at least every 0.1 s.

        Raises:
            ServerSilent: nothing arrived for too long.
        """
        try:
            wanted = next(gen)
            begun = looked = time.monotonic()
            interval = min(LOOK_SECONDS, self.silent_seconds)
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready:
                    begun = looked = now
                elif now - looked >= interval:
                    if not self.is_worth_waiting(now - begun):
                        self.on_silence()
                        self.pgconn.finish()
                        raise ServerSilent(f"the server sent nothing for {now - begun:.1f} seconds")
                    looked = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as end:
            value: RV = end.value
            return value


class WatchedConnection(Watched, psycopg.Connection[Row]):
    """A blocking connection. It stops waiting for a server that no longer responds, and detects an unreplicated commit."""

    is_unreplicated = False
    """Whether a commit succeeded although the server stopped waiting for a synchronous standby."""

    def wait(self, gen: PQGen[RV], *args: Any, **options: Any) -> RV:
        """See psycopg. Raises ServerSilent: see `watched`."""
        return super().wait(self.watched(gen), *args, **options)

    def note(self, notice: psycopg.errors.Diagnostic) -> None:
        """Handle a notice of the server: a warning may state that a commit was not replicated.

        An operator, or a timeout, can cancel the wait for a synchronous standby. PostgreSQL then reports success, with a
        warning. The text of the warning depends on the server's language, but the source file in the warning does not.
        """
        if notice.severity_nonlocalized == "WARNING" and notice.source_file == "syncrep.c":
            self.is_unreplicated = True


def failure_of(error: psycopg.Error, address: PostgresAddress) -> str:
    """Return the message of the server or the driver about a failure, without a password."""
    # If there are several hosts, psycopg lists all failures after the last attempt.
    message = " ".join(str(error).split()).rpartition("All failures were: ")[2]
    for name, value in address.parameters:
        if "password" in name:
            message = message.replace(value, "…")
    return message
