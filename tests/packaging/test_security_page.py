"""SECURITY.md: each guarantee names existing tests, and its statements about settings and packages are true."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [row for row in re.findall(r"^\| (.+) \| (.+) \|$", PAGE, re.MULTILINE) if row[0] != "guarantee"]


def test_each_program_has_guarantees() -> None:
    assert len(ROWS) > 20


@pytest.mark.parametrize(("guarantee", "shown_by"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_guarantee_names_existing_tests(guarantee: str, shown_by: str) -> None:
    named = re.findall(r"`([^`]+)`", shown_by)
    assert named, guarantee
    for name in named:
        assert re.search(r"^(async )?def test_", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE), name


def test_every_named_variable_is_on_the_page_of_the_service() -> None:
    named = set(re.findall(r"WORKSPACED_[A-Z_]+", PAGE))
    assert named
    assert named <= set(re.findall(r"WORKSPACED_[A-Z_]+", (ROOT / "docs" / "service.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_package_has_an_exact_version_and_hashes_and_no_index_is_named(name: str) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", lock.strip())
    assert len(entries) > 40
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+(\[[a-z0-9, -]+\])?==\S+", entry), entry[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:80]
    assert not re.search(r"https?://|--(extra-)?index|--find-links", lock)
    assert f"--require-hashes -r {name}" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_each_extra_that_a_locked_package_needs_is_in_the_lock_file() -> None:
    """Else pip looks for the newest version, and refuses it because it is not locked."""
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    locked: dict[str, set[str]] = {}
    for line in re.findall(r"^[a-z0-9.-]+(?:\[.*\])?==\S+", lock, re.MULTILINE):
        requirement = Requirement(line)
        locked.setdefault(requirement.name, set()).update(requirement.extras)
    needed = 0
    for found in distributions():
        name = canonicalize_name(found.metadata["Name"])
        for need in map(Requirement, found.requires or ()) if name in locked else ():
            if need.extras and any(
                not need.marker or need.marker.evaluate({"extra": one}) for one in {"", *locked[name]}
            ):
                assert need.extras <= locked[canonicalize_name(need.name)], f"{name} needs {need}"
                needed += 1
    assert needed
