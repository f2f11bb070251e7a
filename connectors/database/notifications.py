"""The listener for notifications of PostgreSQL: a thread that wakes the pipeline, and reconnects after a failure.

A notification wakes the pipeline at once. Further notifications within ``INTERVAL_SECONDS`` cause one wake-up. Notifications
are lost while no connection exists, so each new connection also wakes the pipeline.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime

import psycopg
from psycopg import sql

from connectors.database.failure import LoginGuard, LoginRefused, one_line
from connectors.database.options import DatabaseOptions
from connectors.database.postgresql_connection import connect
from connectors.database.postgresql_failure import statement_error
from ingestd.sdk import SourceBroken, SourceContext, SourceError, SourceUnavailable

INTERVAL_SECONDS = 1.0
"""The minimum time between two wake-ups. It limits the number of readings that notifications cause."""
CHECK_SECONDS = 60.0
"""The interval in which the server is checked, because a connection to a frozen server looks like an idle connection."""
STOP_SECONDS = 2.0
"""The maximum wait for the end of the thread. If the thread is still connecting, it ends later by itself."""
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 60.0


class ListenConnection:
    """A connection that listens on the channel of ``options.notify``. Each method may raise `SourceUnavailable`.

    Raises:
        SourceUnavailable: the database is not reachable now.
        SourceBroken: the database or a pooler does not permit listening, or refuses the login.
    """

    def __init__(self, options: DatabaseOptions) -> None:
        url = options.notify_url
        self._options = options if url is None else options.model_copy(update={"url": url})
        self.where = str(self._options.address())
        """The address of the connection, without a password."""
        self._connection = connect(self._options, finds_code=False)
        try:
            self._socket = socket.socket(fileno=os.dup(self._connection.fileno()))
        except OSError:
            self._connection.close()
            raise
        try:
            with self._limited():
                self._begin(str(options.notify))
        except BaseException:
            self.close()
            raise

    def receive(self, seconds: float) -> bool:
        """Wait for notifications. Return False if no notification arrives within ``seconds``."""
        try:
            return bool(list(self._connection.notifies(timeout=max(0.0, seconds), stop_after=1)))
        except psycopg.Error as error:
            raise statement_error(self._options, error, None) from None  # the driver's error may show the address

    def check(self) -> None:
        """Check that the server responds within ``connect_timeout_seconds``. If it does not, end the connection."""
        with self._limited():
            self._connection.execute("SELECT 1")

    def interrupt(self) -> None:
        """End the connection, and so each call that waits for the server. Any thread may call this method."""
        with suppress(OSError):  # the connection has ended already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
        self._connection.close()

    def _begin(self, channel: str) -> None:
        # LISTEN has no effect through a pooler, which changes the server's connection. A pooler announces its own process id.
        own = self._connection.execute("SELECT pg_backend_pid()").fetchone()
        if own != (self._connection.info.backend_pid,):
            raise SourceBroken(
                f"{self.where} is the address of a pooler such as PgBouncer, which does not pass notifications on. Set"
                " notify_url to the server's own address."
            )
        self._connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """End the connection if the context takes longer than ``connect_timeout_seconds``."""
        seconds, is_late = self._options.connect_timeout_seconds, threading.Event()

        def end() -> None:
            is_late.set()
            self.interrupt()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except psycopg.Error as error:
            if is_late.is_set():
                sentence = f"The database {self.where} has not responded for {seconds} seconds."
                raise SourceUnavailable(sentence) from None
            raise statement_error(self._options, error, None) from None  # the driver's error may show the address
        finally:
            timer.cancel()


def verify_listener(options: DatabaseOptions) -> str:
    """Check that the server accepts LISTEN on the channel ``options.notify``. Return the address without a password."""
    with closing(ListenConnection(options)) as connection:
        return connection.where


class NotificationListener:
    """Listens on the channel of ``options.notify`` from `start` to `stop`. The listener's thread calls ``wake``."""

    def __init__(
        self, options: DatabaseOptions, context: SourceContext, login: LoginGuard, wake: Callable[[], None]
    ) -> None:
        self._options = options
        self._context = context
        self._login = login
        self._wake = wake
        self._channel = f"channel {options.notify}"
        self._connection: ListenConnection | None = None
        self._stopping = False
        self._retry = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
        self.sentence = f"Connects to listen on {self._channel}."
        """A sentence for operators: since when the listener listens, or why it does not listen."""

    def start(self) -> None:
        """Start the thread. The method does not wait for the connection."""
        self._thread.start()

    def retry(self) -> None:
        """If the listener waits after a failure or a refused login, connect again now."""
        self._login.forget()
        self._retry.set()

    def stop(self) -> None:
        """Stop the thread, and wait at most ``STOP_SECONDS`` for its end."""
        self._stopping = True
        if self._connection is not None:
            self._connection.interrupt()
        self._retry.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping:
            self._retry.clear()
            try:
                self._listen()
            except LoginRefused as error:
                self._wait_after(str(error), None)
            except SourceError as error:
                self._wait_after(str(error), self._delay())
            except Exception as error:  # noqa: BLE001 - an unexpected failure must not stop the listener permanently
                sentence = f"The listener failed: {one_line(error)} ({type(error).__name__}); please report it."
                self._wait_after(sentence, self._delay())

    def _listen(self) -> None:
        """Connect and wake the pipeline at notifications, until the connection is lost."""
        with self._login.attempt():
            self._connection = ListenConnection(self._options)
        with closing(self._connection) as connection:
            if self._stopping:
                return
            since = datetime.fromtimestamp(self._context.now(), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            self.sentence = f"Listens on {self._channel} of {connection.where} since {since}."
            self._context.log(self.sentence)
            woken = time.monotonic()
            check_at = woken + CHECK_SECONDS
            due: float | None = woken  # wake the pipeline now: notifications before this connection may be lost
            while not self._stopping:
                now = time.monotonic()
                if due is not None and due <= now:
                    self._wake()
                    woken, due = now, None
                if check_at <= now:
                    connection.check()
                    # Each new connection wakes the pipeline. So only a connection that lasts resets the delay.
                    self._failures = 0
                    check_at = now + CHECK_SECONDS
                end = check_at if due is None else min(due, check_at)
                if connection.receive(end - now) and due is None:
                    due = woken + INTERVAL_SECONDS

    def _wait_after(self, sentence: str, seconds: float | None) -> None:
        """Wait ``seconds`` before the next attempt to connect. None: wait until an operator requests an attempt."""
        if self._stopping:
            return
        again = "" if seconds is None else " The next attempt follows within a minute."
        self.sentence = f"Does not listen on {self._channel}: {sentence} Only the schedule starts readings now.{again}"
        if self._failures <= 1:  # only the status shows a repeated failure
            self._context.log(self.sentence)
        self._retry.wait(seconds)

    def _delay(self) -> float:
        self._failures += 1
        longest = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** min(self._failures - 1, 10))
        return longest * random.uniform(0.5, 1)  # noqa: S311 - jitter
