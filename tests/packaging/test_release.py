"""`make release`: its rejections, its changes, and that a rejection changes nothing. A dry run covers the builds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.release import (
    Plan,
    ReleaseRefused,
    check,
    find_interpreters,
    move_unreleased,
    publish,
    set_version,
)

SCRIPT = Path(__file__).parents[2] / "scripts" / "release.py"
PROJECT = '[project]\nname = "ingestd"\nversion = "0.1.0"\ndependencies = ["a>=1"]\n'
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n- Drift.\n\n## 0.1.0 - 2026-01-01\n\n### Added\n- All of it.\n"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "docs").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    (folder / "docs" / "openapi.json").write_text("{}\n")
    (folder / ".gitignore").write_text("dist/\n")
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "Test")
    git(folder, "config", "user.email", "test@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


def plan_of(
    checkout: Path, *, version: str = "0.2.0", pythons: tuple[str, ...] = (), allow_missing: bool = False
) -> Plan:
    work = checkout.parent / "work"
    return Plan(
        checkout=checkout, work=work, version=version, pythons=pythons, dry_run=False, allow_missing=allow_missing
    )


def test_the_version_is_changed_only_in_its_line() -> None:
    assert set_version(PROJECT, "0.2.0") == PROJECT.replace("0.1.0", "0.2.0")
    with pytest.raises(ReleaseRefused, match="has 0 lines"):
        set_version("[project]\n", "0.2.0")


def test_the_unreleased_changes_are_moved_below_the_version_and_the_date() -> None:
    text, notes = move_unreleased(CHANGELOG, "0.2.0", "2026-02-03")
    assert text == CHANGELOG.replace("## Unreleased\n", "## Unreleased\n\n## 0.2.0 - 2026-02-03\n")
    assert notes == "### Added\n- Drift."


def test_a_section_written_before_its_release_gets_the_date() -> None:
    ahead = "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n### Added\n- All of it.\n"
    text, notes = move_unreleased(ahead, "0.1.0", "2026-02-03")
    assert text == ahead.replace("## 0.1.0\n", "## 0.1.0 - 2026-02-03\n")
    assert notes == "### Added\n- All of it."
    with pytest.raises(ReleaseRefused, match=r"under '## Unreleased' and '## 0\.1\.0'"):
        move_unreleased(ahead.replace("Unreleased\n", "Unreleased\n- More.\n"), "0.1.0", "2026-02-03")


def leave_a_file(checkout: Path) -> None:
    (checkout / "new.py").touch()


def tag_it(checkout: Path) -> None:
    git(checkout, "tag", "v0.2.0")


def empty_the_changelog(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-01-01\n\n- All.\n")
    git(checkout, "commit", "--quiet", "--all", "--message", "second")


def change_nothing(checkout: Path) -> None:
    del checkout


@pytest.mark.parametrize(
    ("version", "before", "sentence"),
    [
        ("", change_nothing, "'' is no version of the form x.y.z. Use make release VERSION=1.2.3."),
        ("1.0", change_nothing, "'1.0' is no version of the form x.y.z."),
        ("0.0.9", change_nothing, "version 0.0.9 is lower than 0.1.0 in pyproject.toml."),
        ("0.2.0", leave_a_file, "the tree is not clean. Commit or remove:\n?? new.py"),
        ("0.2.0", tag_it, "the tag v0.2.0 exists already. Choose the next version."),
        ("0.2.0", empty_the_changelog, "CHANGELOG.md has nothing under '## Unreleased'."),
    ],
)
def test_an_impossible_release_is_rejected_with_a_sentence_and_changes_nothing(
    checkout: Path, version: str, before: Callable[[Path], None], sentence: str
) -> None:
    before(checkout)
    state = git(checkout, "status", "--porcelain"), git(checkout, "rev-parse", "HEAD"), git(checkout, "tag")
    command = [sys.executable, str(SCRIPT), version]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"release: {sentence}")
    assert state == (git(checkout, "status", "--porcelain"), git(checkout, "rev-parse", "HEAD"), git(checkout, "tag"))


def test_the_version_of_the_last_commit_can_be_released_for_the_first_time(checkout: Path) -> None:
    check(plan_of(checkout, version="0.1.0"))


def test_a_missing_python_is_named_and_rejected_unless_permitted(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.base_prefix) / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(checkout))
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(ReleaseRefused, match=r"Python 3\.99 is not installed.*ALLOW_MISSING=1"):
        find_interpreters(plan_of(checkout, pythons=(here, "3.99")))
    found = find_interpreters(plan_of(checkout, pythons=(here, "3.99"), allow_missing=True))
    assert list(found) == [here]
    shown = subprocess.run([found[here], "--version"], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"Python {here}.")
    assert "WARNING: not tested on Python 3.99" in capsys.readouterr().out
    with pytest.raises(ReleaseRefused, match=r"Python 3\.99 is not installed"):
        find_interpreters(plan_of(checkout, pythons=("3.99",), allow_missing=True))


def test_the_tested_state_is_committed_tagged_and_kept(checkout: Path) -> None:
    plan = plan_of(checkout)
    (plan.source / "docs").mkdir(parents=True)
    (plan.source / "dist").mkdir()
    text, notes = move_unreleased(CHANGELOG, "0.2.0", "2026-02-03")
    (plan.source / "CHANGELOG.md").write_text(text)
    (plan.source / "pyproject.toml").write_text(set_version(PROJECT, "0.2.0"))
    (plan.source / "docs" / "openapi.json").write_text('{"version": "0.2.0"}\n')
    (plan.source / "dist" / "ingestd-0.2.0-py3-none-any.whl").write_bytes(b"wheel")
    publish(plan, notes)
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "log", "-1", "--format=%s").strip() == "release: 0.2.0"
    assert git(checkout, "tag", "--list", "--format=%(contents)", "v0.2.0").strip() == f"0.2.0\n\n{notes}"
    assert git(checkout, "rev-parse", "v0.2.0^{commit}") == git(checkout, "rev-parse", "HEAD")
    assert (checkout / "CHANGELOG.md").read_text() == text
    assert [path.name for path in (checkout / "dist").iterdir()] == ["ingestd-0.2.0-py3-none-any.whl"]
