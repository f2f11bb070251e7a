"""Messages to systemd: readiness, status and watchdog over the notify socket (sd_notify(3), protocol of systemd 252).

The protocol is implemented here, because the packages for it are unmaintained or are compiled against libsystemd.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Self

RETRY_SECONDS = 1.0
"""The time until messages are sent again to a service manager that did not read its socket."""


class Notifier:
    """Sends the state of a program to the service manager; does nothing if no service manager listens.

    A message never waits: the kernel queues few messages, and a manager that does not read them must not stop the program. The
    newest message of each kind that could not be queued is sent again from the running event loop. Call the methods in this
    loop.

    ``address``: the path of the socket, with a leading ``@`` for an abstract socket, or empty. ``watchdog_seconds``: the
    longest time between two heartbeats; None: the manager expects no heartbeats. ``on_failure`` is called with a sentence when
    messages can't be sent, once until a message is sent again.
    """

    def __init__(
        self,
        address: str = "",
        *,
        watchdog_seconds: float | None = None,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.address = address
        self.watchdog_seconds = watchdog_seconds
        self._on_failure = on_failure
        self._unsent: dict[str, str] = {}
        """By the first field of the message: the newest message that was not sent, in the order of these messages."""
        self._retry: asyncio.TimerHandle | None = None
        self._has_failed = False

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str] = os.environ,
        *,
        pid: int | None = None,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Return a notifier for the variables of systemd: NOTIFY_SOCKET, WATCHDOG_USEC and, if it is set, WATCHDOG_PID."""
        usec = environment.get("WATCHDOG_USEC", "")
        meant_for = environment.get("WATCHDOG_PID", "")
        ours = not meant_for or meant_for == str(pid if pid is not None else os.getpid())
        seconds = int(usec) / 1e6 if ours and usec.isdigit() and int(usec) > 0 else None
        return cls(environment.get("NOTIFY_SOCKET", ""), watchdog_seconds=seconds, on_failure=on_failure)

    def ready(self, status: str) -> None:
        """Report that the start is complete."""
        self._send(f"READY=1\nSTATUS={_line(status)}\nMAINPID={os.getpid()}")

    def reloading(self, status: str) -> None:
        """Report that a reload has begun; `ready` ends it. The manager compares the time with the time of its signal."""
        usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={usec}\nSTATUS={_line(status)}")

    def status(self, sentence: str) -> None:
        """Set the text that `systemctl status` shows."""
        self._send(f"STATUS={_line(sentence)}")

    def stopping(self, status: str) -> None:
        """Report that the shutdown has begun."""
        self._send(f"STOPPING=1\nSTATUS={_line(status)}")

    def alive(self) -> None:
        """Send a heartbeat. The supervised loop must call this well within ``watchdog_seconds``."""
        self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self.address:
            return
        kind = message.partition("=")[0]
        self._unsent.pop(kind, None)
        self._unsent[kind] = message
        self._send_all()

    def _send_all(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.setblocking(False)
                for kind, message in list(self._unsent.items()):
                    channel.sendto(message.encode(), address)
                    del self._unsent[kind]
        except BlockingIOError:
            self._retry = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._send_all)
            self._fail("the service manager does not read it. The messages are sent again until it does")
        except OSError as error:
            self._unsent.clear()
            self._fail(error.strerror or str(error))
        else:
            self._has_failed = False

    def _fail(self, reason: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._on_failure(f"Messages to the notify socket {self.address} can't be sent: {reason}.")


def _line(text: str) -> str:
    return text.replace("\n", " ")
