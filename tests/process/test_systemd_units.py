"""systemd accepts the units and rates them as hardened, and the daemons work under their restrictions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "systemd"
NAMES = ("ingestd", "workspaced")
BINARIES = Path(sys.executable).parent


def tool(name: str) -> str:
    """Return the path of one of systemd's programs; without it the test is skipped, but never in CI."""
    path = shutil.which(name)
    if path is None:
        sentence = f"{name} is missing: install Debian's package systemd"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return path


@pytest.fixture(params=NAMES)
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the unit with another folder of the programs, because systemd verifies that they exist."""
    text = (UNITS / f"{request.param}.service").read_text()
    assert "/opt/ingestd/bin/" in text
    copy = tmp_path / f"{request.param}.service"
    copy.write_text(text.replace("/opt/ingestd/bin", str(BINARIES)))
    return copy


def setting(unit: str, name: str) -> list[str]:
    text = (UNITS / f"{unit}.service").read_text()
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)


def test_systemd_accepts_the_unit_without_a_warning(unit: Path) -> None:
    analyze = tool("systemd-analyze")
    run = subprocess.run(
        [analyze, "verify", "--man=no", "--recursive-errors=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_systemd_would_report_a_mistake_in_the_unit(unit: Path) -> None:
    analyze = tool("systemd-analyze")
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystem=very"))
    run = subprocess.run(
        [analyze, "verify", "--man=no", "--recursive-errors=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert "Failed to parse protect system value" in run.stderr


def test_systemd_finds_the_unit_well_hardened(unit: Path) -> None:
    analyze = tool("systemd-analyze")
    run = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", "--threshold=15", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout  # above 1.5 of 10 the exit code is not 0


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_gives_the_daemon_more_time_to_stop_than_it_takes_and_does_not_repeat_a_wrong_configuration(
    name: str,
) -> None:
    drain_seconds = {"ingestd": 10, "workspaced": 30}[name]
    assert int(setting(name, "TimeoutStopSec")[0]) > drain_seconds
    assert "78" in setting(name, "RestartPreventExitStatus")[0].split()
    assert setting(name, "Type") == ["notify"]


@pytest.mark.parametrize(("name", "permanent"), [("ingestd", {"2", "74", "78"}), ("workspaced", {"2", "78"})])
def test_permanent_failures_are_not_restarted_and_all_others_are_without_limit(name: str, permanent: set[str]) -> None:
    assert set(setting(name, "RestartPreventExitStatus")[0].split()) == permanent
    assert setting(name, "Restart") == ["on-failure"]
    assert setting(name, "StartLimitIntervalSec") == ["0"]
    # systemd evaluates the exit status of the main process only: a failing check before it would be repeated for ever.
    assert setting(name, "ExecStartPre") == []


def test_a_wrong_configuration_ends_the_main_process_of_the_unit_with_a_status_that_is_not_restarted(
    tmp_path: Path,
) -> None:
    config = tmp_path / "ingestd.yaml"
    config.write_text(
        "service: {url: http://127.0.0.1:9, api_key: '${credential:api_key}'}\nstate: s.db\npipelines: []\n"
    )
    command = setting("ingestd", "ExecStart")[0].replace("/opt/ingestd/bin", str(BINARIES))
    words = command.replace("/etc/ingestd/ingestd.yaml", str(config)).split()
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert str(run.returncode) in setting("ingestd", "RestartPreventExitStatus")[0].split(), run.stderr


def test_a_reload_of_the_unit_reaches_the_running_daemon() -> None:
    (reload,), (run,) = setting("ingestd", "ExecReload"), setting("ingestd", "ExecStart")
    assert reload.replace(" reload ", " run ") == run


def test_users_and_folders_are_created_as_the_units_require(tmp_path: Path) -> None:
    sysusers, tmpfiles = tool("systemd-sysusers"), tool("systemd-tmpfiles")
    for kind in ("sysusers", "tmpfiles"):
        folder = tmp_path / "usr/lib" / f"{kind}.d"
        folder.mkdir(parents=True)
        text = (UNITS / f"ingestd.{kind}.conf").read_text()
        if kind == "tmpfiles" and os.geteuid() != 0:
            # Only root can change the owner of folders; the other lines are the same.
            text = re.sub(r"^([dz] +\S+ +\d+ +)\S+( +)\S+", r"\1-\2-", text, flags=re.MULTILINE)
        (folder / "ingestd.conf").write_text(text)
    (tmp_path / "etc").mkdir()
    for command in ([sysusers], [tmpfiles, "--create"]):
        run = subprocess.run(
            [*command, f"--root={tmp_path}", "ingestd.conf"], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
    users = {line.split(":")[0] for line in (tmp_path / "etc/passwd").read_text().splitlines()}
    assert users == {setting(name, "User")[0] for name in NAMES}
    assert (tmp_path / "srv/ingestd/drop").stat().st_mode & 0o7777 == 0o2770
    assert (tmp_path / "etc/ingestd").stat().st_mode & 0o7777 == 0o750


# A separate process, because the restriction applies to a process and its children.
_WITHOUT_WRITTEN_CODE = """
import ctypes, os, sys
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
    sys.exit(99)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.parametrize(
    "command",
    [
        ["-c", "import psycopg, connectors.database"],
        # Both daemons, from the first file to the last response.
        ["-m", "ingestd", "demo"],
    ],
    ids=["libraries", "demo"],
)
def test_both_daemons_run_with_memory_deny_write_execute(command: list[str]) -> None:
    assert setting("ingestd", "MemoryDenyWriteExecute") == setting("workspaced", "MemoryDenyWriteExecute") == ["yes"]
    variables = dict(entry.split("=", 1) for entry in setting("ingestd", "Environment"))
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT_WRITTEN_CODE, *command],
        cwd=UNITS.parent,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    if run.returncode == 99:
        pytest.skip("this kernel has no PR_SET_MDWE (Linux 6.3 and later have it)")
    assert run.returncode == 0, run.stderr
