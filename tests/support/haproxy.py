"""Debian's HAProxy in front of two hosts of the service, with the configuration of docs/how-to/rolling-upgrade.md."""

from __future__ import annotations

import csv
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import pytest

from tests.support.certificates import self_signed
from tests.support.executed_page import blocks
from tests.support.free_port import free_port
from tests.support.network_hosts import Host

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "rolling-upgrade.md").read_text(encoding="utf-8")
DEADLINE_SECONDS = 120.0
HOSTS = {"a": "127.0.1.11", "b": "127.0.1.12"}
"""Addresses that other programs rarely use, so that a restarted host finds its port free."""


class Proxy:
    """A running HAProxy in front of ``port`` of the hosts a and b. ``certificate``: the file that clients must trust.

    ``own``: the host on which HAProxy runs; None: this machine. ``plain_url``: its address without TLS, for a relay.
    """

    def __init__(self, folder: Path, port: int, addresses: Mapping[str, str] = HOSTS, own: Host | None = None) -> None:
        found = shutil.which("haproxy", path="/usr/sbin:/usr/bin")
        if found is None:
            pytest.skip("no HAProxy to test with: install Debian's package haproxy")
        self._folder = folder
        address = own.address if own else "127.0.0.1"
        self.certificate, private = self_signed(folder, "proxy", address=address)
        both = folder / "both.pem"
        both.write_bytes(self.certificate.read_bytes() + private.read_bytes())
        (configuration,) = blocks(PAGE, "haproxy")
        secure, plain, self._control = free_port(), free_port(), folder / "control"
        for shown, used in (
            ("    bind :443", f"    bind {address}:{plain}\n    bind {address}:{secure}"),
            ("/etc/ssl/private/data.example.org.pem", str(both)),
            ("/run/haproxy/admin.sock", str(self._control)),
            ("10.0.0.11:8400", f"{addresses['a']}:{port}"),
            ("10.0.0.12:8400", f"{addresses['b']}:{port}"),
        ):
            assert configuration.count(shown) == 1, shown
            configuration = configuration.replace(shown, used)
        file = folder / "haproxy.cfg"
        file.write_text(configuration)
        command = [found, "-db", "-f", str(file)]
        self._command = own.command(*command) if own else command
        self.url = f"https://{address}:{secure}"
        self.plain_url = f"http://{address}:{plain}"
        self.context = ssl.create_default_context(cafile=self.certificate)
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGTERM)

    def start(self) -> None:
        log_file = self._folder / "haproxy.log"
        self._control.unlink(missing_ok=True)
        with log_file.open("a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_for(lambda: self._control.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, log_file.read_text()

    def stop(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(DEADLINE_SECONDS)

    def column(self, name: str) -> dict[str, str]:
        """Return a column of HAProxy's statistics for each host, such as ``status``."""
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(DEADLINE_SECONDS)
            wire.connect(str(self._control))
            wire.sendall(b"show stat\n")
            text = b"".join(iter(lambda: wire.recv(65_536), b"")).decode()
        rows = csv.DictReader(text.removeprefix("# ").splitlines())
        return {row["svname"]: row[name] for row in rows if row["svname"] in HOSTS}

    def wait_until(self, **states: str) -> None:
        """Wait until each named host has the given status."""
        wait_for(lambda: states.items() <= self.column("status").items())


def wait_for(condition: Callable[[], object]) -> None:
    """Poll a condition until it is true, because nothing signals that it is."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.05)
