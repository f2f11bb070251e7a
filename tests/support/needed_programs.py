"""The programs that tests start, and the command that installs the missing programs.

``python3 tests/support/needed_programs.py`` prints this command, or nothing if no program is missing. It runs without packages.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
FAKE_CLOCK = "/usr/lib/*/faketime/libfaketimeMT.so.1"
_AZURITE = "azurite@3.35.0"


class Need(NamedTuple):
    """The programs that a group of tests needs. ``programs``: names or path patterns. ``debian``, ``npm``: their packages."""

    tests: str
    programs: tuple[str, ...]
    debian: tuple[str, ...]
    npm: str = ""

    @property
    def packages(self) -> str:
        """Return the names of the packages as text for people."""
        return " ".join([*self.debian, *([f"npm:{self.npm}"] if self.npm else [])])


NEEDS = (
    Need("PostgreSQL: source, and store of the service", ("/usr/lib/postgresql/*/bin/postgres",), ("postgresql",)),
    Need("PostgreSQL behind a pool of connections", ("pgbouncer",), ("pgbouncer",)),
    Need("hosts that vanish from the network", ("ip",), ("iproute2",)),
    Need("MariaDB: source", ("mariadbd",), ("mariadb-server",)),
    Need("SFTP: source", ("sshd",), ("openssh-server",)),
    Need("MQTT: source", ("mosquitto",), ("mosquitto",)),
    Need("Azure Blob Storage: source", ("azurite-blob",), ("npm",), _AZURITE),
    Need(
        "pages in a browser",
        ("/usr/bin/chromium", "/usr/bin/chromedriver", "/usr/share/fonts/truetype/dejavu/*.ttf"),
        ("chromium", "chromium-driver", "fonts-dejavu-core"),
    ),
    Need("proxies before the service", ("nginx", "caddy", "haproxy"), ("nginx-light", "caddy", "haproxy")),
    Need("settings of the systemd units", ("systemd-analyze",), ("systemd",)),
    Need("systemd units in a booted system", ("systemd-nspawn",), ("systemd-container",)),
    Need("commands of the documentation", ("curl", "jq"), ("curl", "jq")),
)


CHAOS_NEEDS = (
    NEEDS[0],
    Need("hosts in a network of their own", ("ip", "tc"), ("iproute2",)),
    Need("the proxy before the service", ("haproxy",), ("haproxy",)),
    Need("clocks that differ", (FAKE_CLOCK,), ("faketime",)),
)
"""The needs of `make chaos`, which is not part of CI."""


def missing_needs(needs: Sequence[Need] = NEEDS) -> list[Need]:
    """Return the needs with a missing program."""
    return [need for need in needs if not all(map(_exists, need.programs))]


def install_command(needs: Sequence[Need]) -> str:
    """Return the command that installs the packages of all needs; empty without packages."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    debian = [name for need in needs for name in need.debian if name != "npm" or not _exists("npm")]
    npm = [need.npm for need in needs if need.npm]
    parts = []
    if debian:
        parts += [
            f"{sudo}apt-get update -qq",
            f"{sudo}apt-get install -qq --yes --no-install-recommends {' '.join(debian)}",
        ]
    if npm:
        parts.append(f"{sudo}npm install --global --no-fund --no-audit --loglevel=error {' '.join(npm)}")
    return " && ".join(parts)


def skipped_tests(needs: Sequence[Need]) -> Iterator[str]:
    """Yield a table of the skipped tests as lines, then the command that installs the missing programs."""
    width = max(len(need.tests) for need in needs)
    yield "These tests are skipped, because a program is missing:"
    for need in needs:
        yield f"  {need.tests:{width}}  {need.packages}"
    yield "To run all tests, install the packages of Debian and npm:"
    yield f"  {install_command(needs)}"


def _exists(program: str) -> bool:
    return any(Path("/").glob(program[1:])) if "/" in program else shutil.which(program, path=_PATH) is not None


if __name__ == "__main__":
    print(install_command(missing_needs()))  # noqa: T201 - a program
