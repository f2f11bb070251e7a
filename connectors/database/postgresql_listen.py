"""PostgreSQL's LISTEN: a connection of its own that waits for notifications.

A pooler gives the server's connection to another client after each transaction, and then nothing arrives. A pooler has its own
process ids, which reveals it.
"""

from __future__ import annotations

import math
import select
import time
from typing import NoReturn

import psycopg
from psycopg import pq, sql
from psycopg.errors import error_from_result

from connectors.database.options import DatabaseOptions
from connectors.database.postgresql_failure import PostgresqlFailure
from connectors.database.postgresql_parameters import session_parameters
from ingestd.sdk import SourceBroken, SourceUnavailable


class WaitInterrupted(Exception):
    """The listener is to end."""


class ListenConnection:
    """A connection that listens on the channel of ``options.notify``. ``interruption``: a file that ends a wait when readable.

    Raises:
        SourceUnavailable: the database is not reachable now.
        SourceBroken: the database or a pooler does not permit it, or refuses the login.
    """

    holders: list[tuple[str, ...]] | None = None
    """Not known: no statement of this connection waits for a lock."""

    def __init__(self, options: DatabaseOptions, interruption: int) -> None:
        url = options.notify_url
        self._options = options if url is None else options.model_copy(update={"url": url})
        self._failure = PostgresqlFailure(self._options)
        self._interruption = interruption
        self.where = str(self._options.address())
        """The address that is listened to, without a password."""
        try:
            self._connection = psycopg.connect(**session_parameters(self._options))
        except psycopg.Error as error:
            raise self._failure.of_connection(error) from None  # the driver's error may show the address
        self._pgconn = self._connection.pgconn
        try:
            self._begin(str(options.notify))
        except BaseException:
            self.close()
            raise

    def receive(self, seconds: float) -> bool:
        """Wait for notifications; return False if none arrive in ``seconds``.

        Raises:
            WaitInterrupted: the interruption is readable.
            SourceUnavailable: the connection is lost.
        """
        try:
            if self._take():
                return True
            if self._wait(seconds):
                self._pgconn.consume_input()
            return self._take()
        except psycopg.Error as error:
            self._raise(error)

    def check(self) -> None:
        """Have the server respond, within the time for a connection.

        Raises:
            WaitInterrupted: the interruption is readable.
            SourceUnavailable: the server does not respond, or the connection is lost.
        """
        try:
            self._query(b"SELECT 1")
        except psycopg.Error as error:
            self._raise(error)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _begin(self, channel: str) -> None:
        try:
            own = int(self._query(b"SELECT pg_backend_pid()") or b"0")
            if own != self._pgconn.backend_pid:
                raise SourceBroken(
                    f"{self.where} is the address of a pooler such as PgBouncer, which does not pass notifications on. Set"
                    " notify_url to the server's own address."
                )
            self._query(sql.SQL("LISTEN {}").format(sql.Identifier(channel)).as_bytes(self._connection))
        except psycopg.Error as error:
            self._raise(error)

    def _take(self) -> bool:
        """Take all notifications that have arrived; return whether there was one."""
        found = False
        while self._pgconn.notifies() is not None:
            found = True
        return found

    def _query(self, statement: bytes) -> bytes | None:
        """Run a statement and return the first value of its result."""
        seconds = self._options.connect_timeout_seconds
        end = time.monotonic() + seconds
        value: bytes | None = None
        self._pgconn.send_query(statement)
        while True:
            while self._pgconn.is_busy():
                if not self._wait(end - time.monotonic()):
                    raise SourceUnavailable(f"The database {self.where} has not responded for {seconds} seconds.")
                self._pgconn.consume_input()
            result = self._pgconn.get_result()
            if result is None:
                return value
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
            if result.ntuples:
                value = result.get_value(0, 0)

    def _wait(self, seconds: float) -> bool:
        """Wait until the server sends something; return False if it does not within ``seconds``."""
        poll = select.poll()
        poll.register(self._pgconn.socket, select.POLLIN)
        poll.register(self._interruption, select.POLLIN)
        ready = [file for file, _ in poll.poll(max(0, math.ceil(seconds * 1000)))]
        if self._interruption in ready:
            raise WaitInterrupted
        return bool(ready)

    def _raise(self, error: psycopg.Error) -> NoReturn:
        raise self._failure.of_statement(error, self) from None  # the driver's error may show the address

    def restart(self) -> bool:
        """Return False: the causes of an error are not searched on this connection."""
        return False

    def rows(self, sql: str) -> list[tuple[str, ...]]:  # noqa: ARG002 - see restart
        """Return nothing; see `restart`."""
        return []
