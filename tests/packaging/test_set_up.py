"""What `make` installs and says first: the environments of a run and of the tests, the Python, and the programs of tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.locked_requirements import closure
from scripts.require_python import refusal
from tests.support import needed_programs
from tests.support.needed_programs import NEEDS, Need, install_command, missing_needs, skipped_tests

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def locked(name: str) -> list[str]:
    """Return the lines of a lock file that name a package and its version."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line.removesuffix("\\").strip() for line in lines if "==" in line and not line.startswith(" ")]


def applies(line: str) -> bool:
    marker = Requirement(line).marker
    return marker is None or marker.evaluate()


def test_a_run_installs_what_the_daemon_and_the_service_need_and_nothing_else() -> None:
    installed = {canonicalize_name(Requirement(line).name) for line in locked("requirements.lock") if applies(line)}
    needed = closure(["ingestd[workspaced]", "editables", "hatchling"], without=["ingestd"])
    assert installed == {canonicalize_name(one.metadata["Name"]) for one in needed}
    assert len(installed) <= 60


def test_the_tests_run_with_the_packages_of_a_run() -> None:
    run, dev = ({line.partition(" ;")[0] for line in locked(f"requirements{name}.lock")} for name in ("", "-dev"))
    assert run - dev == set()


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13), (3, 14)])
def test_a_supported_python_is_accepted(version: tuple[int, int]) -> None:
    assert refusal(*version, PROJECT, has_venv=True) == ""
    assert f"Python :: {version[0]}.{version[1]}" in PROJECT


@pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 15), (4, 0)])
def test_another_python_gets_one_sentence_with_the_versions_that_work(version: tuple[int, int]) -> None:
    sentence = refusal(*version, PROJECT, has_venv=True)
    assert sentence.startswith("ingestd needs Python 3.11 to 3.14, and this is Python ")
    assert f"Python {version[0]}.{version[1]}." in sentence
    assert "\n" not in sentence


def test_a_python_that_makes_no_environment_gets_the_name_of_the_package() -> None:
    assert "python3-venv" in refusal(3, 13, PROJECT, has_venv=False)


def test_this_python_may_run_the_project() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "require_python.py")]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_missing_programs_are_in_one_table_with_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needed_programs, "_exists", lambda program: program in {"jq", "sshd"})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    needs = missing_needs()
    assert [need for need in NEEDS if need not in needs] == [need for need in NEEDS if need.programs == ("sshd",)]
    *table, command = skipped_tests(needs)
    assert all(any(need.tests in line and need.debian[0] in line for line in table) for need in needs)
    update, apt, npm = command.strip().split(" && ")
    assert update.startswith("sudo apt-get update")
    assert {"postgresql", "mariadb-server", "npm", "curl"} < set(apt.split())
    assert npm.startswith("sudo npm install --global")
    assert npm.endswith(" azurite@3.35.0")


def test_a_machine_that_has_all_programs_gets_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needed_programs, "_exists", lambda program: True)
    assert missing_needs() == []
    assert install_command([]) == ""


def test_npm_is_installed_only_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needed_programs, "_exists", lambda program: program == "npm")
    assert "apt-get" not in install_command([Need("cloud", ("azurite-blob",), ("npm",), "azurite@1")])
