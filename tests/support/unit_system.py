"""A booted system with the programs of this checkout in /opt/ingestd, its units, a workspace and a running service."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.booted_system import DEADLINE_SECONDS, BootedSystem, booted, missing_requirement

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("ingestd", "connectors", "workspaced", "systemd")
SERVICE = "http://127.0.0.1:8400"
_PROGRAM = "#!{python} -P\nimport sys\n\nfrom {name}.cli import main\n\nsys.exit(main())\n"


class UnitSystem:
    """A booted system, and the operations of tests: write configurations, send requests to the service, drop files."""

    def __init__(self, system: BootedSystem, root: Path) -> None:
        self.system = system
        self.root = root
        self._key = ""
        self.workspace = ""

    def install(self) -> None:
        """Install the units, run the commands that `install-units` prints, start the service, and create key and workspace."""
        self.system.run("ldconfig")  # Python may be built for another library folder
        lines = self.system.run("/opt/ingestd/bin/ingestd", "install-units").stdout.splitlines()
        *prepared, last = (line.strip() for line in lines[lines.index("Next:") + 1 :])
        for command in prepared:
            self.system.run("sh", "-ec", command)
        words = "/opt/ingestd/bin/workspaced keys create me --role owner --data /var/lib/workspaced"
        self._key = self.system.run(*words.split(), user="workspaced").stdout.strip()
        self.write("/etc/ingestd/api_key", self._key, mode=0o600)
        self.system.run("systemctl", "enable", "--now", "workspaced")
        self.workspace = self.request("/v1/workspace", {"label": "Rover"})["id"]
        self.configure("ingestd", "masses", folder="/srv/ingestd/drop")
        self.system.run(*last.split())

    def write(
        self, path: str, text: str | bytes, *, mode: int = 0o644, owner: str = "root", group: str = "root"
    ) -> None:
        """Write a file of the system under another name, then rename it, as exporters should."""
        target = self.root / path.lstrip("/")
        temporary = target.parent.parent / f".{target.name}.part"
        temporary.write_bytes(text.encode() if isinstance(text, str) else text)
        temporary.chmod(mode)
        os.chown(temporary, *self._ids(owner, group))
        temporary.rename(target)

    def configure(self, name: str, sink: str, *, folder: str, template: str = "{part}.mass") -> None:
        """Write a configuration with one pipeline from a folder into a sink. Create the folder if it does not exist."""
        inside = self.root / folder.lstrip("/")
        if not inside.exists():
            inside.mkdir()
            os.chown(inside, *self._ids("ingestd", "ingestd"))
        state = "/var/lib/ingestd/ingestd.db" if name == "ingestd" else f"/var/lib/ingestd/{name}/ingestd.db"
        pipeline = {
            "name": sink,
            "source": {"connector": "directory", "path": folder, "settle_seconds": 0},
            "entries": {"key": template, "value": "{mass}"},
            "sink": {"workspace": "Rover", "label": sink},
        }
        settings = {
            "service": {"url": SERVICE, "api_key": "${credential:api_key}"},
            "state": state,
            "pipelines": [pipeline],
        }
        self.write(f"/etc/ingestd/{name}.yaml", json.dumps(settings), mode=0o640, group="ingestd")  # JSON is YAML

    def instance(self, name: str, **settings: str) -> str:
        """Create an instance of the template unit, with configuration and folder; return its name. ``settings``: a drop-in."""
        unit = f"ingestd@{name}.service"
        self.write(f"/etc/ingestd/{name}.api_key", self._key, mode=0o600)
        self.configure(name, name, folder=f"/srv/ingestd/{name}")
        folder = self.root / f"etc/systemd/system/{unit}.d"
        folder.mkdir()
        lines = "".join(f"{key}={value}\n" for key, value in settings.items())
        (folder / "test.conf").write_text(f"[Service]\n{lines}")
        self.system.run("systemctl", "daemon-reload")
        return unit

    def drop(self, path: str, content: str | bytes) -> None:
        """Put a file into a folder that the daemon watches."""
        self.write(path, content, owner="ingestd", group="ingestd")

    def request(self, path: str, body: object = None) -> Any:
        """Send a request to the service from inside the system; return the response."""
        return self._curl(path) if body is None else self._curl(path, "--json", "@-", given=json.dumps(body))

    def upload(self, name: str, content: str) -> str:
        """Upload a file to the workspace; return its id."""
        path = f"/v1/cloud-storage?workspaceId={self.workspace}&fileName={name}"
        return str(self._curl(path, "--data-binary", "@-", given=content)["id"])

    def conversion(self, file: str) -> str:
        """Wait until the conversion of a file has ended; return its state."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            state = str(self.request(f"/v1/cloud-storage/{file}")["conversion"]["state"])
            if state not in ("pending", "in_progress"):
                return state
        raise AssertionError(f"the conversion of {file} did not end")

    def _curl(self, path: str, *more: str, given: str = "") -> Any:
        words = ("curl", "-sS", "--fail-with-body", SERVICE + path, "-H", f"x-api-key: {self._key}", *more)
        return json.loads(self.system.run(*words, given=given).stdout)

    def value(self, sink: str, key: str) -> str:
        """Return the value of an entry in the sink with the label ``sink``."""
        base = f"/v1/workspace/{self.workspace}/data-sink"
        (found,) = (one["visibleId"] for one in self.request(base) if one["label"] == sink)
        return str(self.request(f"{base}/{found}/{key}")["value"])

    def main_process(self, unit: str) -> str:
        return self.system.show(unit, "MainPID")["MainPID"]

    def _ids(self, owner: str, group: str) -> tuple[int, int]:
        def number(file: str, name: str) -> int:
            lines = (self.root / "etc" / file).read_text().splitlines()
            return next(int(line.split(":")[2]) for line in lines if line.startswith(f"{name}:"))

        return number("passwd", owner), number("group", group)


@contextlib.contextmanager
def unit_system(root: Path) -> Iterator[UnitSystem]:
    """Boot this machine's systemd in a new root folder with the programs of this checkout. Skip the test if that is impossible.

    INGESTD_UNIT_ROOT names another root folder, with its own systemd and the programs in /opt/ingestd: `make systemd-test`.
    """
    reason = missing_requirement()
    if reason is not None:
        pytest.skip(reason)
    given = os.environ.get("INGESTD_UNIT_ROOT")
    with booted(Path(given)) if given else _own_system(root) as system:
        machine = UnitSystem(system, Path(given) if given else root)
        machine.install()
        yield machine


def _own_system(root: Path) -> contextlib.AbstractContextManager[BootedSystem]:
    """Boot the systemd of this machine in ``root``."""
    root.mkdir()
    root.chmod(0o755)
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for name in ("etc", "opt", "srv", "usr"):
        (root / name).mkdir()
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/os-release").write_text("ID=debian\n")
    return booted(root, (Path("/usr"), "/usr"), *_programs(root))


def _programs(root: Path) -> Iterator[tuple[Path, str]]:
    """Write an environment of the running Python into /opt/ingestd; yield the paths that must be mounted, and where."""
    home = root / "opt/ingestd"
    base, version = Path(sys.base_prefix).resolve(), f"python{sys.version_info.major}.{sys.version_info.minor}"
    if base.is_relative_to("/usr"):
        place = str(base)
    else:
        place = "/opt/python"
        (root / "etc/ld.so.conf").write_text(f"{place}/lib\n")
        yield base, place
    (home / "bin").mkdir(parents=True)
    (home / "bin/python").symlink_to(f"{place}/bin/{version}")
    (home / "pyvenv.cfg").write_text(f"home = {place}/bin\n")
    for name in ("ingestd", "workspaced"):
        (home / "bin" / name).write_text(_PROGRAM.format(python="/opt/ingestd/bin/python", name=name))
        (home / "bin" / name).chmod(0o755)
    packages = home / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (packages / "checkout.pth").write_text("/opt/ingestd/checkout\n/opt/ingestd/packages\n")
    yield Path(sysconfig.get_path("purelib")), "/opt/ingestd/packages"
    for name in PACKAGES:
        yield CHECKOUT / name, f"/opt/ingestd/checkout/{name}"
