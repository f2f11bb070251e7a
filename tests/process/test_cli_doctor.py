"""`ingestd doctor`: what it checks on the machine, and what it finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestd.commands import machine_check
from ingestd.commands.machine_check import check_machine
from ingestd.daemon.configuration import read_configuration
from tests.support.daemon_process import here
from tests.support.document_server import DocumentServer

SECRET = "s3cret-of-the-service"


def write(folder: Path, url: str, api_key: str) -> Path:
    (folder / "drop").mkdir()
    config = folder / "ingestd.yaml"
    config.write_text(
        f"service: {{url: '{url}', api_key: '{api_key}'}}\nstate: ingestd.db\npipelines:\n"
        "  - name: parts\n    source: {connector: directory, path: drop}\n    sink: {workspace: Bench, label: Parts}\n"
        "    entries: {key: '{part}', value: '{mass}'}\n",
        encoding="utf-8",
    )
    return config


def machine(config: Path, *, inotify: Path = Path("/proc/sys/fs/inotify")) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for one in check_machine(read_configuration(config, environment=os.environ, cwd=config.parent), inotify=inotify):
        assert one.subject == "machine"
        found.setdefault(one.step.name, []).append((one.step.outcome, one.step.sentence))
    return found


def test_the_report_has_the_steps_of_check_and_of_the_machine_and_no_secret(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = write(tmp_path, server.url, server.api_key)
        config.chmod(0o600)
        check = here(tmp_path, "check")
        run = here(tmp_path, "doctor")
    assert (run.returncode, run.stderr) == (0, "")
    names = [line.split(":")[0] for line in run.stdout.splitlines()]
    assert names[: len(check.stdout.splitlines())] == [line.split(":")[0] for line in check.stdout.splitlines()]
    for name in ("versions", "disk", "clock", "descriptors", "watches", "modes"):
        assert [one for one in names if one.endswith(f"machine · {name}")], run.stdout
    assert server.api_key not in run.stdout


def test_files_with_secrets_that_all_accounts_can_read_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET, encoding="utf-8")
    (tmp_path / "key").chmod(0o644)
    config = write(tmp_path, "http://127.0.0.1:9", "${file:key}")
    config.chmod(0o644)
    assert machine(config)["modes"] == [
        ("failed", f"All accounts can read {tmp_path / 'key'}. It is a secret: 'chmod o-rwx {tmp_path / 'key'}'.")
    ]
    (tmp_path / "key").chmod(0o640)
    assert [outcome for outcome, _ in machine(config)["modes"]] == ["passed"]
    config.write_text(config.read_text(encoding="utf-8").replace("${file:key}", SECRET), encoding="utf-8")
    assert machine(config)["modes"] == [
        ("failed", f"All accounts can read {config}. It contains a secret: 'chmod o-rwx {config}'.")
    ]
    assert here(tmp_path, "doctor").returncode == 5


def test_the_address_of_a_sqlite_file_is_no_secret(tmp_path: Path) -> None:
    config = write(tmp_path, "http://127.0.0.1:9", "${file:key}")
    (tmp_path / "key").write_text(SECRET, encoding="utf-8")
    (tmp_path / "key").chmod(0o600)
    table = """
  - name: table
    source: {connector: database, url: "sqlite:///parts.db", table: part}
    schedule: {every: 1h}
    entries: {key: "{number}", value: "{mass}"}
    sink: {workspace: Bench, label: Table}
"""
    config.write_text(config.read_text(encoding="utf-8").rstrip() + table, encoding="utf-8")
    config.chmod(0o644)
    assert {outcome for outcome, _ in machine(config)["modes"]} == {"passed"}


def test_small_limits_are_a_problem_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = tmp_path / "inotify"
    limits.mkdir()
    (limits / "max_user_watches").write_text("100\n", encoding="ascii")
    (limits / "max_user_instances").write_text("128\n", encoding="ascii")
    config = write(tmp_path, "http://127.0.0.1:9", "k")
    monkeypatch.setattr(machine_check, "FREE_BYTES", 1 << 62)
    monkeypatch.setattr(machine_check, "DESCRIPTORS", 1 << 62)
    found = machine(config, inotify=limits)
    [(watches, remedy)] = found["watches"]
    assert (watches, "sysctl fs.inotify.max_user_watches=8192" in remedy) == ("failed", True)
    assert [outcome for outcome, _ in found["disk"] + found["descriptors"]] == ["failed", "failed"]
    assert machine(config, inotify=tmp_path / "none")["watches"][0][0] == "skipped"
