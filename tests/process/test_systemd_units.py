"""systemd accepts the units and rates them as hardened, and the daemons work under their restrictions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ingestd.process.unit_files import user_units
from tests.support.daemon_process import ingestd, running_daemon, write_configuration
from tests.support.document_server import DocumentServer

UNITS = Path(__file__).parents[2] / "systemd"
NAMES = ("ingestd", "ingestd@", "workspaced")
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


def warnings_of(run: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the warnings of `systemd-analyze verify`, except the one that systemd before 253 has about notify-reload."""
    lines = (run.stdout + run.stderr).splitlines()
    old = [line for line in lines if line.endswith("Failed to parse service type, ignoring: notify-reload")]
    version = subprocess.run([tool("systemd-analyze"), "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.split()[1]) >= 253:
        assert not old
    assert run.returncode == (1 if lines else 0)
    return [line for line in lines if line not in old]


def test_systemd_accepts_the_unit_without_a_warning_and_would_report_a_mistake(unit: Path) -> None:
    command = [tool("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no", str(unit)]
    assert warnings_of(subprocess.run(command, capture_output=True, text=True, check=False)) == []
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystem=very"))
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert re.search("Failed to parse (protect system value|ProtectSystem=very)", run.stderr)


def test_systemd_accepts_the_units_of_an_account(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    for path, text in user_units(environment, tmp_path).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        assert not re.search(r"^(User|Group|Protect\w+|Private\w+)=", text, re.MULTILINE), path
        run = subprocess.run(
            [analyze, "verify", "--user", "--man=no", "--recursive-errors=no", str(path)],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        assert warnings_of(run) == [], path


def test_the_template_has_the_settings_of_the_unit_with_the_name_of_the_instance() -> None:
    def settings(name: str) -> str:
        return "".join(
            line for line in (UNITS / name).read_text().splitlines(keepends=True) if not line.startswith("#")
        )

    expected = settings("ingestd.service")
    for before, after in (
        ("folders and databases\n", "folders and databases (%i)\n"),
        ("/etc/ingestd/ingestd.yaml", "/etc/ingestd/%i.yaml"),
        ("/etc/ingestd/api_key", "/etc/ingestd/%i.api_key"),
        ("StateDirectory=ingestd\n", "StateDirectory=ingestd/%i\n"),
        ("WorkingDirectory=/var/lib/ingestd\n", "WorkingDirectory=/var/lib/ingestd/%i\n"),
    ):
        assert before in expected
        expected = expected.replace(before, after)
    assert settings("ingestd@.service").strip() == expected.strip()


def test_every_finding_of_the_rating_is_explained_in_the_unit(unit: Path) -> None:
    run = subprocess.run(
        [tool("systemd-analyze"), "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {line.split()[1].split("=")[0] for line in run.stdout.splitlines() if line.startswith("✗")}
    text = (UNITS / f"{unit.stem}.service").read_text()
    comments = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    assert found
    for name in found:
        assert f"{name}=" in comments, name


def test_systemd_finds_the_unit_well_hardened(unit: Path) -> None:
    analyze = tool("systemd-analyze")
    run = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", "--threshold=15", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout  # above 1.5 of 10 the exit code is not 0


@pytest.mark.parametrize(
    ("name", "permanent", "drain_seconds"),
    [("ingestd", {"2", "74", "78"}, 10), ("ingestd@", {"2", "74", "78"}, 10), ("workspaced", {"2", "78"}, 30)],
)
def test_the_unit_waits_for_the_end_and_restarts_without_limit_after_all_but_permanent_failures(
    name: str, permanent: set[str], drain_seconds: int
) -> None:
    assert int(setting(name, "TimeoutStopSec")[0]) > drain_seconds
    assert set(setting(name, "RestartPreventExitStatus")[0].split()) == permanent
    assert setting(name, "Restart") == ["on-failure"]
    assert setting(name, "StartLimitIntervalSec") == ["0"]
    # systemd evaluates the exit status of the main process only: a failing check before it would be repeated for ever.
    assert setting(name, "ExecStartPre") == []
    # An older systemd ignores the second line.
    assert setting(name, "Type") == (["notify"] if name == "workspaced" else ["notify", "notify-reload"])


def test_a_parser_process_that_the_kernel_kills_for_lack_of_memory_does_not_end_the_unit(tmp_path: Path) -> None:
    units = [path.read_text() for path in UNITS.glob("*.service")]
    of_an_account = [text for path, text in user_units({}, tmp_path).items() if path.suffix == ".service"]
    assert len(units) == len(NAMES)
    for text in units + of_an_account:
        assert re.findall(r"^OOMPolicy=(.*)$", text, re.MULTILINE) == ["continue"]


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
    for name in ("ingestd", "ingestd@"):
        (reload,), (run,) = setting(name, "ExecReload"), setting(name, "ExecStart")
        assert reload.replace(" reload ", " run ") == run


def test_a_secret_from_load_credential_reaches_the_service_and_the_daemon_cannot_run_without_it(tmp_path: Path) -> None:
    (credential,) = setting("ingestd", "LoadCredential")
    name, _, _ = credential.partition(":")
    # As systemd does it: a folder with a file for each credential.
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / name).write_text("the-credential\n")
    with DocumentServer() as server:
        server.api_key = "the-credential"
        server.workspace("Bench")
        config = write_configuration(tmp_path, server.url, {"upto": 3})
        config.write_text(config.read_text().replace("test-key", f"${{credential:{name}}}"))
        with running_daemon(tmp_path, "run", "-c", str(config), CREDENTIALS_DIRECTORY=str(credentials)) as (daemon, _):
            daemon.wait_for("partition_acknowledged")
            # The command runs without the credential: it needs no secret, and the daemon reads its own.
            reload = ingestd(tmp_path, "reload", "-c", str(config))
            assert (reload.returncode, reload.stderr) == (0, "")
            assert daemon.stop() == 0
            assert "the-credential" not in "\n".join(daemon.lines)
        without = ingestd(tmp_path, "run", "-c", str(config))
        assert without.returncode == 78
        assert f"The credential '{name}' can't be read" in without.stderr


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
    members = {line.split(":")[0]: line.split(":")[3] for line in (tmp_path / "etc/group").read_text().splitlines()}
    assert members["ingestd-drop"] == "ingestd"
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
