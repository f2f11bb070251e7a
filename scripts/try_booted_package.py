"""Test the Debian package under systemd: boot a root folder, and follow the installation page there.

The `sh` blocks in two sections of docs/installation.md run there as root, unchanged.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from scripts.booted_system import BootedSystem, booted, missing_requirement
from scripts.root_folder import expect

PAGE = Path(__file__).parents[1] / "docs/installation.md"
WANTED = ("apt", "ca-certificates", "curl", "dbus", "systemd")
"""The other packages that the commands of the page need."""
UNITS = ("ingestd.service", "workspaced.service")
WANTS = "etc/systemd/system/multi-user.target.wants"
DROP = "/srv/ingestd/drop"
CONFIGURATION = "etc/ingestd/ingestd.yaml"
ACKNOWLEDGED = '"event": "partition_acknowledged"'


def try_booted(root: Path, package: Path) -> None:
    """Boot ``root``, in which the package is installed, and run the commands of the page.

    Raises:
        AssertionError: a command failed; the message has its output and the end of the journal.
    """
    reason = missing_requirement()
    if reason is not None:
        raise SystemExit(f"the package can't be tried under systemd: {reason}")
    shutil.copy(package, root / "root")
    # apt upgrades only to another version, so the installed package is recorded with an older version.
    status = root / "var/lib/dpkg/status"
    record = re.compile(r"(^Package: ingestd\n(?:.+\n)*?Version: )(.*)$", re.MULTILINE)
    status.write_text(record.sub(r"\g<1>\g<2>~former", status.read_text(encoding="utf-8")), encoding="utf-8")
    with booted(root) as system:
        for block in blocks("First start"):
            perform(system, block)
        expect(states(system) == ["active", "active"], "both units of the first start are active")
        system.wait_for_text("ingestd.service", ACKNOWLEDGED)
        expect(value(system, "00417.mass_kg") == "0.10", "the sample of the page is delivered")
        try_reload(system, root)
        backup, upgrade, restore_service, restore = blocks("Upgrade, backup and restore")
        perform(system, backup)
        before = processes(system)
        perform(system, upgrade)
        expect(states(system) == ["active", "active"], "both units are active after the upgrade")
        expect(not set(before) & set(processes(system)), "the upgrade has restarted both units")
        drop(system, "after-upgrade", "00419,0.30")
        expect(value(system, "00419.mass_kg") == "0.30", "a file is delivered after the upgrade")
        perform(system, restore_service)
        perform(system, restore)
        expect(states(system) == ["active", "active"], "both units are active after the restoration")
        drop(system, "after-restore", "00420,0.40")
        expect(value(system, "00420.mass_kg") == "0.40", "a file is delivered after the restoration")
        expect(value(system, "00419.mass_kg") == "0.30", "what the backups do not contain is delivered again")
        try_removal(system, root)


def try_removal(system: BootedSystem, root: Path) -> None:
    """Remove and purge the package while its units run."""
    system.run("systemctl", "enable", "ingestd@line")
    system.run("dpkg", "--remove", "ingestd")
    expect(states(system) == ["inactive", "inactive"], "removing stops both units")
    system.run("dpkg", "--purge", "ingestd")
    enabled = [path.name for path in (root / WANTS).iterdir() if path.name.startswith(("ingestd", "workspaced"))]
    expect(not enabled, "purging leaves no unit enabled")


def try_reload(system: BootedSystem, root: Path) -> None:
    """Reload a changed and then a broken configuration with `systemctl reload`."""
    file = root / CONFIGURATION
    good = file.read_text(encoding="utf-8")
    file.write_text(good.replace("settle_seconds: 2", "settle_seconds: 0"), encoding="utf-8")
    system.run("systemctl", "reload", "ingestd")
    drop(system, "after-reload", "00418,0.20")
    expect(value(system, "00418.mass_kg") == "0.20", "a file is delivered after a reload")
    changed = file.read_text(encoding="utf-8")
    file.write_text(changed.replace("pipelines:", "pipeline:"), encoding="utf-8")
    refused = system.run("systemctl", "reload", "ingestd", accepted=None)
    expect(refused.returncode != 0, "systemctl reload fails with a broken configuration")
    expect(states(system) == ["active", "active"], "the daemon runs on with the former configuration")
    file.write_text(changed, encoding="utf-8")


def blocks(section: str) -> list[str]:
    """Return the `sh` blocks in a section of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def perform(system: BootedSystem, block: str) -> None:
    """Run a block of the page in /root, which contains the package."""
    print(block.rstrip())
    print(system.run("sh", "-euc", f"cd /root\n{block}", seconds=300).stdout.rstrip())


def drop(system: BootedSystem, name: str, row: str) -> None:
    """Put a file into the drop folder, and wait until it is delivered."""
    system.run("sh", "-euc", f"printf 'part_number,mass_kg\\n{row}\\n' > {DROP}/{name}.csv")
    system.wait_for_text("ingestd.service", f"{ACKNOWLEDGED}.*{name}.csv")


def states(system: BootedSystem) -> list[str]:
    """Return the states of both units."""
    return [system.show(unit, "ActiveState")["ActiveState"] for unit in UNITS]


def processes(system: BootedSystem) -> list[str]:
    """Return the process ids of both units' main processes."""
    return [system.show(unit, "MainPID")["MainPID"] for unit in UNITS]


def value(system: BootedSystem, key: str) -> str:
    """Return the value of an entry in the only sink."""
    (workspace,) = _request(system, "/v1/workspace")
    sinks = f"/v1/workspace/{workspace['id']}/data-sink"
    (sink,) = _request(system, sinks)
    return str(_request(system, f"{sinks}/{sink['visibleId']}/{key}")["value"])


def _request(system: BootedSystem, path: str) -> Any:
    words = f"curl -sS --fail-with-body 'http://127.0.0.1:8400{path}' -H \"x-api-key: $(cat /etc/ingestd/api_key)\""
    return json.loads(system.run("sh", "-euc", words).stdout)
