"""The listener for notifications of a database: a thread that wakes the pipeline, and connects again when it must.

A notification wakes the pipeline at once. Further ones within ``INTERVAL_SECONDS`` are one wake-up. Notifications may be lost
without a connection, so each new connection is a wake-up, too.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from connectors.database.failure import LoginRefused, one_line
from connectors.database.login import LoginGuard
from connectors.database.options import DatabaseOptions
from connectors.database.postgresql_listen import ListenConnection, WaitInterrupted
from ingestd.sdk import SourceError

INTERVAL_SECONDS = 1.0
"""The shortest time between two wake-ups, so that a storm of notifications is a bounded number of readings."""
CHECK_SECONDS = 60.0
"""The interval at which the server must respond: a connection to a frozen server looks the same as an idle one."""
STOP_SECONDS = 2.0
"""The longest wait for the thread. One that waits for a connection ends later by itself, without an effect."""
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 60.0


class NotificationListener:
    """Listens on the channel of ``options.notify`` from `start` to `stop`.

    ``wake`` is called from the listener's thread. ``now`` returns seconds since the epoch. ``report`` writes a sentence for
    operators. ``sentence`` states whether it listens, and since when, or why not.
    """

    def __init__(
        self,
        options: DatabaseOptions,
        login: LoginGuard,
        *,
        wake: Callable[[], None],
        now: Callable[[], float],
        report: Callable[[str], None],
    ) -> None:
        self._options = options
        self._login = login
        self._wake = wake
        self._now = now
        self._report = report
        self._channel = f"channel {options.notify}"
        self._interruption, self._interrupter = socket.socketpair()
        self._stopping = False
        self._retry = threading.Event()
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
        self.sentence = f"Connects to listen on {self._channel}."

    def start(self) -> None:
        """Begin to listen, without waiting for a connection."""
        self._thread.start()

    def retry(self) -> None:
        """Connect again now, if it waits after a failure, and log in again if the login was refused."""
        self._login.forget()
        self._retry.set()

    def stop(self) -> None:
        """End the thread, within ``STOP_SECONDS``."""
        self._stopping = True
        self._interrupter.send(b"x")
        self._retry.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._retry.clear()
                try:
                    self._listen()
                except WaitInterrupted:
                    return
                except LoginRefused as error:
                    self._wait_after(str(error), None)
                except SourceError as error:
                    self._wait_after(str(error), self._delay())
                except Exception as error:  # noqa: BLE001 - an unexpected failure must not end the wake-ups for good
                    sentence = f"The listener failed: {one_line(error)} ({type(error).__name__}); please report it."
                    self._wait_after(sentence, self._delay())
        finally:
            self._interruption.close()
            self._interrupter.close()

    def _listen(self) -> None:
        """Connect and wake the pipeline at notifications, until the connection is lost."""
        with self._login.attempt():
            connection = ListenConnection(self._options, self._interruption.fileno())
        try:
            since = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            self.sentence = f"Listens on {self._channel} of {connection.where} since {since}."
            self._report(self.sentence)
            self._serve(connection)
        finally:
            connection.close()

    def _serve(self, connection: ListenConnection) -> None:
        woken = time.monotonic()
        check_at = woken + CHECK_SECONDS
        due: float | None = woken  # what was notified without a connection is unknown
        while True:
            now = time.monotonic()
            if due is not None and due <= now:
                self._wake()
                woken, due = now, None
            if check_at <= now:
                connection.check()
                self._failures = 0  # only a connection that lasts is a success, because each new one wakes the pipeline
                check_at = now + CHECK_SECONDS
            end = check_at if due is None else min(due, check_at)
            if connection.receive(end - now) and due is None:
                due = woken + INTERVAL_SECONDS

    def _wait_after(self, sentence: str, seconds: float | None) -> None:
        """Wait ``seconds`` before the next connection (None: until an operator requests it)."""
        if self._stopping:
            return
        again = "" if seconds is None else " The next attempt follows within a minute."
        self.sentence = f"Does not listen on {self._channel}: {sentence} Only the schedule starts readings now.{again}"
        if self._failures <= 1:  # a failure that repeats is in the status
            self._report(self.sentence)
        self._retry.wait(seconds)

    def _delay(self) -> float:
        self._failures += 1
        longest = min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** min(self._failures - 1, 10))
        return longest * random.uniform(0.5, 1)  # noqa: S311 - jitter
