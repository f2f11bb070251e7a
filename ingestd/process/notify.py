"""Messages to systemd: readiness, status and watchdog over the notify socket (sd_notify(3), protocol of systemd 252).

The protocol is implemented here, because the packages for it are unmaintained or are compiled against libsystemd.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

import msgspec


class Notifier(msgspec.Struct, frozen=True, kw_only=True):
    """Sends the daemon's state to the service manager; does nothing if no service manager listens.

    ``address``: the path of the socket, with a leading ``@`` for an abstract socket, or empty. ``watchdog_seconds``: the
    longest time between two heartbeats; None: the manager expects no heartbeats.
    """

    address: str = ""
    watchdog_seconds: float | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, *, pid: int | None = None) -> Notifier:
        """Return a notifier for the variables of systemd: NOTIFY_SOCKET, WATCHDOG_USEC and, if it is set, WATCHDOG_PID."""
        usec = environment.get("WATCHDOG_USEC", "")
        meant_for = environment.get("WATCHDOG_PID", "")
        ours = not meant_for or meant_for == str(pid if pid is not None else os.getpid())
        seconds = int(usec) / 1e6 if ours and usec.isdigit() and int(usec) > 0 else None
        return cls(address=environment.get("NOTIFY_SOCKET", ""), watchdog_seconds=seconds)

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
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(message.encode(), address)


def _line(text: str) -> str:
    return text.replace("\n", " ")
