"""Make a release: `make release VERSION=x.y.z`. With `DRY_RUN=1`, only step 5 is left out.

The work is done in a copy of HEAD in a temporary folder. The checkout changes only after all checks have passed:

1. Check that the tree is clean, the tag is free, the version is not lower than the last, and the changelog has changes.
2. In the copy: set the version in pyproject.toml, and move the unreleased changes below the version and the date.
3. Build the sdist and the wheel, once.
4. For each version of Python: install only the wheel and the locked versions of its dependencies. Run its commands, the demo
   and the unit tests.
5. In the checkout: write the changed files, commit, tag, and put the sdist and the wheel into dist/. Nothing is pushed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
UNRELEASED = "## Unreleased\n"
VERSION_LINE = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
PROGRAMS = Path(sys.executable).parent
TESTED = (
    "tests", "bench", "scripts", "config", "docs", "systemd", "pyproject.toml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md",
)  # fmt: skip
"""Files that the tests read. The project's packages are left out, so that the tests import the installed wheel."""


class ReleaseRefused(Exception):
    """The release cannot be made; the message has the reason and the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The arguments. ``pythons`` are versions such as ``3.11``; ``work`` is a temporary folder."""

    checkout: Path
    work: Path
    version: str
    pythons: tuple[str, ...]
    dry_run: bool
    allow_missing: bool

    @property
    def tag(self) -> str:
        """Return the name of the tag."""
        return f"v{self.version}"

    @property
    def source(self) -> Path:
        """Return the folder of the copy of HEAD that is built."""
        return self.work / "source"


def main(arguments: list[str]) -> int:
    """Run a release; 0 on success, 1 with a sentence on standard error if it is refused or fails."""
    parser = argparse.ArgumentParser(description="Build, test and tag a release.")
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="do not commit, tag or write into dist/")
    parser.add_argument("--allow-missing", action="store_true", help="skip each version of Python that is missing")
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, metavar="X.Y")
    given = parser.parse_args(arguments)
    checkout = Path(run("git", "rev-parse", "--show-toplevel").strip())
    with tempfile.TemporaryDirectory(prefix="ingestd-release-") as work:
        plan = Plan(
            checkout=checkout, work=Path(work), version=given.version, pythons=tuple(given.pythons),
            dry_run=given.dry_run, allow_missing=given.allow_missing,
        )  # fmt: skip
        try:
            release(plan)
        except ReleaseRefused as refused:
            print(f"release: {refused}", file=sys.stderr)
            return 1
    return 0


def release(plan: Plan) -> None:
    """Make the release.

    Raises:
        ReleaseRefused: A check failed; the checkout is unchanged.
    """
    check(plan)
    interpreters = find_interpreters(plan)
    say(f"copy HEAD and set version {plan.version}")
    unpack_head(plan)
    project, changelog = plan.source / "pyproject.toml", plan.source / "CHANGELOG.md"
    project.write_text(set_version(project.read_text(encoding="utf-8"), plan.version), encoding="utf-8")
    today = datetime.now(UTC).date().isoformat()
    text, notes = move_unreleased(changelog.read_text(encoding="utf-8"), plan.version, today)
    changelog.write_text(text, encoding="utf-8")
    wheel = build(plan)
    document = ""
    for number, interpreter in interpreters.items():
        say(f"test the wheel on Python {number}")
        document = test_wheel(plan, wheel, number, interpreter)
    (plan.source / "docs" / "openapi.json").write_text(document, encoding="utf-8")
    if plan.dry_run:
        say(f"dry run: would commit and tag {plan.tag} with these notes, and keep {wheel.name} and the sdist")
        print(notes)
        return
    publish(plan, notes)


def check(plan: Plan) -> None:
    """Run the checks that need no build.

    Raises:
        ReleaseRefused: A check failed.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", plan.version):
        raise ReleaseRefused(f"'{plan.version}' is no version of the form x.y.z. Use make release VERSION=1.2.3.")
    if changed := git(plan, "status", "--porcelain"):
        raise ReleaseRefused(f"the tree is not clean. Commit or remove:\n{changed.rstrip()}")
    if git(plan, "tag", "--list", plan.tag):
        raise ReleaseRefused(f"the tag {plan.tag} exists already. Choose the next version.")
    now = read_version((plan.checkout / "pyproject.toml").read_text(encoding="utf-8"))
    if ordered(plan.version) < ordered(now):
        raise ReleaseRefused(f"version {plan.version} is lower than {now} in pyproject.toml.")
    move_unreleased((plan.checkout / "CHANGELOG.md").read_text(encoding="utf-8"), plan.version, "today")


def find_interpreters(plan: Plan) -> dict[str, str]:
    """Return the interpreter of each version of the plan, from PATH or pyenv; uv tries to download the missing versions.

    Raises:
        ReleaseRefused: A version is missing and the plan permits no missing versions, or all versions are missing.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([*map(str, pyenv.glob("3.*/bin")), os.environ["PATH"]]),
        "UV_PYTHON_INSTALL_DIR": str(plan.work / "pythons"),
    }
    find = [str(PROGRAMS / "uv"), "python", "find", "--no-project"]
    install = [str(PROGRAMS / "uv"), "python", "install", "--quiet"]
    found, missing = {}, []
    for number in plan.pythons:
        done = subprocess.run([*find, number], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            subprocess.run([*install, number], env=environment, capture_output=True, check=False)
            done = subprocess.run([*find, number], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            missing.append(number)
        else:
            found[number] = done.stdout.strip()
    if missing:
        names = ", ".join(f"Python {number}" for number in missing)
        if not plan.allow_missing or not found:
            hint = "" if not found else " Set ALLOW_MISSING=1 to release without this test."
            raise ReleaseRefused(f"{names} is not installed, and uv could not download it. Install it.{hint}")
        say(f"WARNING: not tested on {names}, which is not installed (ALLOW_MISSING)")
    return found


def unpack_head(plan: Plan) -> None:
    """Copy the tracked files of HEAD."""
    archive = plan.work / "head.tar"
    git(plan, "archive", "--output", str(archive), "HEAD")
    with tarfile.open(archive) as opened:
        opened.extractall(plan.source, filter="data")


def build(plan: Plan) -> Path:
    """Build the sdist and the wheel in dist/ of the copy, with the commit time of HEAD; return the wheel's path."""
    say("build the sdist and the wheel")
    epoch = git(plan, "log", "-1", "--format=%ct").strip()
    run(sys.executable, "-m", "hatchling", "build", cwd=plan.source, SOURCE_DATE_EPOCH=epoch)
    (wheel,) = (plan.source / "dist").glob("*.whl")
    (sdist,) = (plan.source / "dist").glob("*.tar.gz")
    for built in (sdist, wheel):
        print(f"{built.name}  {built.stat().st_size / 1e6:.1f} MB")
    return wheel


def test_wheel(plan: Plan, wheel: Path, number: str, interpreter: str) -> str:
    """Install the wheel into a new environment and test it there; return the OpenAPI document that the service prints.

    Raises:
        ReleaseRefused: A command or a test failed.
    """
    environment = plan.work / f"python-{number}"
    uv, python = str(PROGRAMS / "uv"), str(environment / "bin" / "python")
    lock = str(plan.source / "requirements-dev.lock")
    run(uv, "venv", "--quiet", "--no-project", "--python", interpreter, str(environment))
    used = run(python, "--version").strip()
    if not used.startswith(f"Python {number}."):
        raise ReleaseRefused(f"{interpreter} is {used} instead of Python {number}.")
    install = [uv, "pip", "install", "--quiet", "--no-config", "--python", python, "--constraints", lock]
    run(*install, f"{wheel}[workspaced,postgres]", cwd=plan.work)
    version = run(str(environment / "bin" / "ingestd"), "--version", cwd=plan.work).strip()
    if version != f"ingestd {plan.version}":
        raise ReleaseRefused(f"the wheel says '{version}' instead of 'ingestd {plan.version}'.")
    run(str(environment / "bin" / "workspaced"), "--help", cwd=plan.work)
    demo = run(str(environment / "bin" / "ingestd"), "demo", cwd=plan.work)
    print(f"{version}, {used}: demo: {demo.splitlines()[-1]}")
    run(uv, "pip", "install", "--quiet", "--no-config", "--python", python, "--require-hashes", "--requirements", lock)
    tests = plan.work / f"tests-{number}"
    tests.mkdir()
    for name in TESTED:
        part = plan.source / name
        (shutil.copytree if part.is_dir() else shutil.copy)(part, tests / name)
    report = run(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "auto", "--maxprocesses", "4",
        "--dist", "loadfile", "tests/unit", cwd=tests,
    )  # fmt: skip
    print(f"unit tests: {report.splitlines()[-1].strip('= ')}")
    return run(str(environment / "bin" / "workspaced"), "openapi", cwd=plan.work)


def publish(plan: Plan, notes: str) -> None:
    """Write the copy's changes into the checkout, commit and tag them, and put the built files into dist/."""
    files = ("pyproject.toml", "CHANGELOG.md", "docs/openapi.json")
    for name in files:
        shutil.copy(plan.source / name, plan.checkout / name)
    git(plan, "add", *files)
    git(plan, "commit", "--quiet", "--allow-empty", "--message", f"release: {plan.version}")
    git(plan, "tag", "--annotate", plan.tag, "--cleanup=verbatim", "--message", f"{plan.version}\n\n{notes}")
    kept = plan.checkout / "dist"
    kept.mkdir(exist_ok=True)
    for built in (plan.source / "dist").iterdir():
        shutil.copy(built, kept)
    say(f"{plan.tag} is tagged; dist/ has the tested files. Next: git push --follow-tags, and upload dist/.")


def read_version(project: str) -> str:
    """Return the version in the text of pyproject.toml.

    Raises:
        ReleaseRefused: The text has no line with a version, or more than one.
    """
    found = VERSION_LINE.findall(project)
    if len(found) != 1:
        raise ReleaseRefused(f'pyproject.toml has {len(found)} lines of the form version = "…" instead of one.')
    return str(found[0])


def set_version(project: str, version: str) -> str:
    """Return the text of pyproject.toml with another version."""
    read_version(project)
    return VERSION_LINE.sub(f'version = "{version}"', project)


def move_unreleased(changelog: str, version: str, date: str) -> tuple[str, str]:
    """Return the changelog with its unreleased changes moved below ``version`` and ``date``, and the text of these changes.

    If the changelog already has a section for ``version`` without a date, this section gets the date instead.

    Raises:
        ReleaseRefused: There are no unreleased changes, or they are in two sections.
    """
    unreleased, prepared = section(changelog, UNRELEASED), section(changelog, f"## {version}\n")
    if unreleased and prepared:
        raise ReleaseRefused(
            f"CHANGELOG.md has changes under '## Unreleased' and '## {version}'. Put them into one section."
        )
    if prepared:
        return changelog.replace(f"## {version}\n", f"## {version} - {date}\n", 1), prepared
    if not unreleased:
        raise ReleaseRefused("CHANGELOG.md has nothing under '## Unreleased'. Describe what a user notices.")
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n## {version} - {date}\n", 1), unreleased


def section(changelog: str, heading: str) -> str:
    """Return the text below a heading of the second level; empty if there is no such heading."""
    _, _, after = changelog.partition(heading)
    return re.split(r"^## ", after, maxsplit=1, flags=re.MULTILINE)[0].strip()


def ordered(version: str) -> tuple[int, ...]:
    """Return a version as a tuple of numbers, which can be compared."""
    return tuple(int(part) for part in version.split("."))


def git(plan: Plan, *arguments: str) -> str:
    """Return the output of a git command in the checkout."""
    return run("git", *arguments, cwd=plan.checkout)


def run(*command: str, cwd: Path | None = None, **variables: str) -> str:
    """Return the standard output of a command that succeeds.

    Raises:
        ReleaseRefused: The command failed; the message has the end of its output.
    """
    # Neither the checkout nor this environment may replace the installed packages.
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        end = (done.stdout + done.stderr)[-6000:].rstrip()
        raise ReleaseRefused(f"{' '.join(command)} failed with exit code {done.returncode}:\n{end}")
    return done.stdout


def say(what: str) -> None:
    """Print a headline."""
    print(f"== {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
