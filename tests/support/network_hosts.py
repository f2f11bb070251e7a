"""Hosts in a network on this machine. A host is a network namespace. Its cable can be unplugged, so that packets are lost."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import pytest

_SLOW = (
    ("netem", "delay", "100ms", "20ms", "loss", "1%"),
    ("tbf", "rate", "2mbit", "burst", "16kb", "latency", "400ms"),
)
"""Queueing disciplines for a slow cable. The second is for a kernel without netem: a packet waits up to 0.4 s or is lost."""


class Host:
    """A host with one address. `command` runs this machine's programs on the host."""

    def __init__(self, name: str, address: str, bridge: str) -> None:
        self.address = address
        self._name = name
        self._bridge = bridge

    def command(self, *words: str) -> list[str]:
        """Return the command that runs a program on this host, with the files and Unix sockets of this machine."""
        return ["ip", "netns", "exec", self._name, *words]

    def unplug(self) -> None:
        """Drop all packets from and to the host. Neither side is notified, as after a power failure."""
        _ip("link", "set", self._name, "nomaster")

    def plug_in(self) -> None:
        """Connect the host with the bridge again."""
        _ip("link", "set", self._name, "master", self._bridge)

    def isolate(self, *, on: bool) -> None:
        """Drop the packets between this host and other isolated hosts. All other packets arrive."""
        _ip("link", "set", self._name, "type", "bridge_slave", "isolated", "on" if on else "off")

    def slow_down(self) -> str:
        """Delay packets from and to the host, and lose some; return the name of the used discipline."""
        for words in _SLOW:
            if all(_run("tc", *end, "root", *words).returncode == 0 for end in self._ends("replace")):
                return words[0]
        raise AssertionError("tc can't make a cable slow: the kernel has neither netem nor tbf")

    def speed_up(self) -> None:
        """Remove the discipline of `slow_down`."""
        for end in self._ends("del"):
            _run("tc", *end, "root")

    def _ends(self, verb: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the first arguments of `tc` for each end of the cable."""
        return ("qdisc", verb, "dev", self._name), ("-n", self._name, "qdisc", verb, "dev", "eth0")


class Network:
    """A bridge to which this machine and its hosts are connected."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._bridge = f"it{secrets.token_hex(4)}"
        # Each process has its own part of 198.18.0.0/15, the addresses for network tests (RFC 2544).
        self._prefix = f"198.{18 + os.getpid() // 256 % 2}.{os.getpid() % 256}"
        self.address = f"{self._prefix}.1"
        """The address of this machine."""
        self._numbers = count(2)
        _ip("link", "add", self._bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", self._bridge)
        _ip("address", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")

    def host(self) -> Host:
        """Add a host."""
        number = next(self._numbers)
        name = f"{self._bridge}-{number}"
        host = Host(name, f"{self._prefix}.{number}", self._bridge)
        _ip("netns", "add", name)
        self._stack.callback(_ip, "netns", "del", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        host.plug_in()
        _ip("link", "set", name, "up")
        _ip("-n", name, "address", "add", f"{host.address}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            _ip("-n", name, "link", "set", interface, "up")
        return host


@contextmanager
def network() -> Iterator[Network]:
    """Create a network without hosts. Skip the test without root or Debian's package iproute2."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("no network to test with: run the tests as root, and install Debian's package iproute2")
    with ExitStack() as stack:
        yield Network(stack)


def _ip(*words: str) -> None:
    done = _run("ip", *words)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
