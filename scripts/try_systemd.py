"""Test the units under the systemd of another Debian release, in a new root folder: `make systemd-test`.

debootstrap makes the root folder, and pip installs the wheel there. The tests of the booted units run in it. Then an account
runs the units of `install-units --user`. Needs root, the network, and the packages `debootstrap` and `systemd-container`.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from scripts.booted_system import BootedSystem, booted, missing_requirement
from scripts.root_folder import expect

ROOT = Path(__file__).parents[1]
INCLUDED = "ca-certificates,curl,dbus,dbus-user-session,libpam-systemd,python3-venv,systemd,systemd-sysv"
ACKNOWLEDGED = '"event": "partition_acknowledged"'
RELOADED = '"event": "configuration_reloaded", "by": "SIGHUP"'
SIGNAL_ALONE = """\
mkdir -p /etc/systemd/system/ingestd.service.d
printf '[Service]\\nExecReload=\\n' >/etc/systemd/system/ingestd.service.d/signal.conf
systemctl daemon-reload
systemctl start ingestd
test "$(systemctl show ingestd --property=Type --value)" = notify-reload
"""
PIPELINES = 200
"""The number of pipelines that a reload adds. The reload then takes longer than a `systemctl reload` that does not wait."""
ACCOUNT = "ada"
HOME = f"/home/{ACCOUNT}"
CONFIGURATION = f"{HOME}/.config/ingestd/ingestd.yaml"
PREPARATION = """\
cd
/opt/ingestd/bin/ingestd install-units --user
mkdir -m 700 .config/ingestd drop
/opt/ingestd/bin/workspaced keys create me --role owner --data .local/state/workspaced >.config/ingestd/api_key
systemctl --user daemon-reload
systemctl --user enable --now workspaced
/opt/ingestd/bin/workspaced workspaces create Rover --data .local/state/workspaced
"""
VALUE = """\
key="x-api-key: $(cat ~/.config/ingestd/api_key)"
address=http://127.0.0.1:8400/v1/workspace
get() { curl -sS --fail-with-body "$1" -H "$key"; }
workspace=$(get $address | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')
sink=$(get $address/$workspace/data-sink | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["visibleId"])')
get $address/$workspace/data-sink/$sink/%s
"""


def main(arguments: list[str]) -> int:
    """Test the wheel in the folder ``arguments[0]`` on the release ``arguments[1]``; return 0 if every check succeeds."""
    folder, release = arguments
    (wheel,) = Path(folder).glob("ingestd-*.whl")
    reason = missing_requirement()
    if reason is not None:
        raise SystemExit(f"the units can't be tried: {reason}")
    if shutil.which("debootstrap") is None:
        raise SystemExit("debootstrap is missing: install Debian's package debootstrap")
    with tempfile.TemporaryDirectory(prefix="ingestd-root-") as temporary:
        Path(temporary).chmod(0o755)
        root = Path(temporary, "root")
        make_release(root, release, wheel)
        tests = (sys.executable, "-m", "pytest", "-q", "tests/process/test_booted_units.py")
        subprocess.run(tests, cwd=ROOT, env={**os.environ, "INGESTD_UNIT_ROOT": str(root)}, check=True)
        with booted(root) as system:
            print(system.run("systemctl", "--version").stdout.splitlines()[0])
            try_signal(system, root)
            system.run("systemctl", "disable", "--now", "ingestd", "workspaced")
            try_account(system, root)
            check_journal(system)
    return 0


def make_release(root: Path, release: str, wheel: Path) -> None:
    """Make a root folder with a Debian release and the programs in /opt/ingestd."""
    command = ("debootstrap", "--variant=minbase", f"--include={INCLUDED}", release, str(root))
    subprocess.run(command, check=True)
    trusted = ssl.get_default_verify_paths().cafile
    if trusted is not None:  # this machine's network may have its own certificate authority
        shutil.copy(trusted, root / "etc/ssl/certs/ca-certificates.crt")
    shutil.copy(wheel, root / "opt")
    install = f"/opt/ingestd/bin/pip install --quiet '/opt/{wheel.name}[postgres,workspaced]'"
    command = ("chroot", str(root), "sh", "-ec", f"python3 -m venv /opt/ingestd; {install}")
    subprocess.run(command, check=True)


def try_signal(system: BootedSystem, root: Path) -> None:
    """Reload without ExecReload=, so that only `Type=notify-reload` waits for the end of the reload."""
    system.run("sh", "-euc", SIGNAL_ALONE)
    file = root / "etc/ingestd/ingestd.yaml"
    settings = json.loads(file.read_text(encoding="utf-8"))
    (one,) = settings["pipelines"]
    for number in range(PIPELINES):
        folder = f"/srv/ingestd/folder-{number}"
        system.run("install", "-d", "-o", "ingestd", "-g", "ingestd", folder)
        added = {"name": f"p{number}", "source": one["source"] | {"path": folder}}
        settings["pipelines"].append(one | added | {"sink": one["sink"] | {"label": f"p{number}"}})
    file.write_text(json.dumps(settings), encoding="utf-8")
    returned = float(system.run("sh", "-euc", "systemctl reload ingestd; date +%s.%N; journalctl --sync").stdout)
    log = system.run("journalctl", "--output=cat", "--unit=ingestd").stdout.splitlines()
    ended = [datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp() for line in log if RELOADED in line]
    expect(len(ended) == 1 and ended[0] < returned, "systemctl reload waits for the end of the reload of the signal")


def try_account(system: BootedSystem, root: Path) -> None:
    """Run the units of an account: start, delivery, reload, restart and stop."""
    system.run("useradd", "--create-home", ACCOUNT)
    number = system.run("id", "-u", ACCOUNT).stdout.strip()
    manager = f"user@{number}.service"

    def perform(text: str, accepted: tuple[int, ...] | None = (0,)) -> subprocess.CompletedProcess[str]:
        places = (f"HOME={HOME}", f"XDG_RUNTIME_DIR=/run/user/{number}")
        return system.run("env", *places, "sh", "-euc", text, user=ACCOUNT, accepted=accepted)

    def drop(name: str, row: str) -> None:
        perform(f"printf 'part,mass\\n{row}\\n' >~/drop/{name}.csv")
        system.wait_for_text(manager, f"{ACKNOWLEDGED}.*{name}.csv")

    def value(key: str) -> str:
        return str(json.loads(perform(VALUE % key).stdout)["value"])

    # logind accepts only callers that run in a unit.
    system.run("systemd-run", "--quiet", "--wait", "--pipe", "loginctl", "enable-linger", ACCOUNT)
    system.run("systemctl", "start", manager)
    perform(PREPARATION)
    state = f"{HOME}/.local/state/ingestd/ingestd.db"
    configuration = {
        "service": {"url": "http://127.0.0.1:8400", "api_key": "${credential:api_key}"},
        "state": state,
        "pipelines": [
            {
                "name": "masses",
                "source": {"connector": "directory", "path": f"{HOME}/drop", "settle_seconds": 0},
                "entries": {"key": "{part}.mass", "value": "{mass}"},
                "sink": {"workspace": "Rover", "label": "masses"},
            }
        ],
    }
    file = root / CONFIGURATION.lstrip("/")
    file.write_text(json.dumps(configuration), encoding="utf-8")
    perform("systemctl --user enable --now ingestd")
    drop("one", "A-1,0.10")
    expect(value("A-1.mass") == "0.10", "the units of an account deliver a file")
    stored = root / state.lstrip("/")
    expect(stored.is_file() and not stored.parent.is_symlink(), "the state is not in the folder of the configuration")
    good = file.read_text(encoding="utf-8").replace("{part}.mass", "{part}.other")
    file.write_text(good, encoding="utf-8")
    perform("systemctl --user reload ingestd")
    drop("two", "A-2,0.20")
    expect(value("A-2.other") == "0.20", "a reload applies a changed configuration")
    file.write_text(good.replace("pipelines", "pipeline"), encoding="utf-8")
    expect(
        perform("systemctl --user reload ingestd", accepted=None).returncode != 0, "a broken configuration is refused"
    )
    drop("three", "A-3,0.30")
    expect(value("A-3.other") == "0.30", "the configuration in use is unchanged")
    file.write_text(good, encoding="utf-8")
    perform("systemctl --user kill --kill-whom=main --signal=KILL ingestd")
    system.wait_for_text(manager, '"event": "daemon_ready"')
    drop("four", "A-4,0.40")
    expect(value("A-4.other") == "0.40", "a killed daemon is restarted and delivers")
    perform("systemctl --user stop ingestd workspaced")
    shown = perform("systemctl --user show ingestd --property=ActiveState,Result").stdout.split()
    expect(sorted(shown) == ["ActiveState=inactive", "Result=success"], "a stopped daemon ends by itself")


def check_journal(system: BootedSystem) -> None:
    """Check that the journal has no complaint of systemd about the settings of the units."""
    log = system.run("journalctl", "--output=cat").stdout.splitlines()
    complaints = ("Unknown ", "ignoring", "deprecated", "assuming update")
    found = [
        line for line in log if ("ingestd" in line or "workspaced" in line) and any(one in line for one in complaints)
    ]
    expect(not found, "systemd does not complain about a setting" + "".join(f"\n{line}" for line in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
