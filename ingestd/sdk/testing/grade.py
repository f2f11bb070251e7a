"""The grade of a connector: it depends on the suites that the tests of its package run, and on the connector's class.

The tests run in a separate process, with this module as a plug-in of pytest. The plug-in writes a report to the file that the
environment variable `REPORT` names.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from ingestd.sdk.connector import Connector, Explains, Verifies

Grade: TypeAlias = Literal["none", "bronze", "silver", "gold"]
GRADES: Sequence[Grade] = ("none", "bronze", "silver", "gold")

REPORT = "INGESTD_CONNECTOR_REPORT"
_SUITES = {
    "ConnectorConformance": "kit",
    "ConsumeConformance": "kit",
    "FaultConformance": "faults",
    "KillConformance": "kills",
    "MemoryConformance": "memory",
}


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement of a grade. ``sentence``: what was found, or what to do."""

    grade: Grade
    name: str
    passed: bool
    sentence: str


class SuiteReport(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the tests of a package.

    ``passed``, ``failed``: the number of tests by suite; ``own``: tests outside of a suite. ``output``: the output of pytest.
    """

    passed: Mapping[str, int]
    failed: Mapping[str, int]
    output: str


class TestsMissing(Exception):
    """The tests can't be run; the message is a sentence."""


def run_tests(package: Path, *, seconds: float) -> SuiteReport:
    """Run the tests of a package in a separate process.

    Raises:
        TestsMissing: pytest is not installed, or there are no tests, or they did not end within ``seconds``.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "ingestd.sdk.testing.grade", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        try:
            done = subprocess.run(  # noqa: S603 - pytest, in the folder that the person names
                command,
                cwd=package,
                env=os.environ | {REPORT: str(report)},
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TestsMissing(f"The tests of {package} did not end within {seconds:g} seconds.") from None
        output = (done.stdout + done.stderr).strip()
        if "No module named pytest" in output:
            raise TestsMissing("pytest is not installed: pip install pytest.")
        if not report.exists():
            raise TestsMissing(f"The tests of {package} can't be run:\n{output}")
        found = json.loads(report.read_text(encoding="utf-8"))
    return SuiteReport(passed=found["passed"], failed=found["failed"], output=output)


def requirements(connector: type[Connector], package: Path, tests: SuiteReport) -> Iterator[Requirement]:
    """Yield all requirements, from bronze to gold."""
    settings = _settings(package)
    yield _suite(tests, "bronze", "kit", "Subclass ConnectorConformance or ConsumeConformance in a test module.")
    yield _suite(tests, "bronze", "own", "", needed=False)
    yield _documented(connector, package)
    yield _has(
        issubclass(connector, Verifies),
        "silver",
        "check",
        "verify() checks the access before anything runs",
        "verify()",
    )
    if connector.memory_grows:
        yield Requirement(grade="silver", name="memory", passed=True, sentence=f"It grows: {connector.memory_grows}")
    else:
        remedy = "Subclass MemoryConformance, or set Connector.memory_grows to the reason why memory grows."
        yield _suite(tests, "silver", "memory", remedy)
    if settings.get("network", True):
        remedy = "Subclass FaultConformance. If no server is read, set `network = false` in [tool.ingestd.connector]."
        yield _suite(tests, "silver", "faults", remedy)
        if settings.get("stays_connected", True):
            shows = "health() shows the connection; `stays_connected = false` if it is open during a reading only"
            yield _has(connector.health is not Connector.health, "silver", "health", shows, "health()")
    yield _suite(tests, "gold", "kills", "Subclass KillConformance: the daemon is killed while it reads.")
    yield _has(issubclass(connector, Explains), "gold", "explain", "explain() says why something waits", "explain()")


def grade_of(found: Sequence[Requirement]) -> Grade:
    """Return the highest grade for which all requirements passed, also the requirements of lower grades."""
    reached: Grade = "none"
    for grade in GRADES[1:]:
        if not all(one.passed for one in found if one.grade == grade):
            break
        reached = grade
    return reached


def _suite(tests: SuiteReport, grade: Grade, suite: str, remedy: str, *, needed: bool = True) -> Requirement:
    passed, failed = tests.passed.get(suite, 0), tests.failed.get(suite, 0)
    if failed:
        sentence = f"{failed} of {passed + failed} tests fail."
    elif passed or not needed:
        sentence = f"Passed tests: {passed}."
    else:
        sentence = remedy
    return Requirement(
        grade=grade,
        name="other tests" if suite == "own" else suite,
        passed=not failed and (passed > 0 or not needed),
        sentence=sentence,
    )


def _has(present: bool, grade: Grade, name: str, sentence: str, method: str) -> Requirement:
    return Requirement(
        grade=grade,
        name=name,
        passed=present,
        sentence=f"{sentence}." if present else f"Implement {method}: {sentence}.",
    )


def _documented(connector: type[Connector], package: Path) -> Requirement:
    bare = [name for name, field in connector.Options.model_fields.items() if not field.description]
    if bare:
        fault = f"These options have no description: {', '.join(bare)}."
    elif not (connector.__doc__ or "").strip() or connector.__doc__ == Connector.__doc__:
        fault = f"{connector.__name__} has no docstring."
    elif not (package / "README.md").is_file():
        fault = f"{package / 'README.md'} is missing."
    elif "## Guarantees" not in (package / "README.md").read_text(encoding="utf-8"):
        fault = "README.md has no section '## Guarantees'."
    else:
        fault = ""
    sentence = fault or "Options, connector and guarantees are described."
    return Requirement(grade="bronze", name="docs", passed=not fault, sentence=sentence)


def _settings(package: Path) -> Mapping[str, Any]:
    """Return [tool.ingestd.connector] of the package: ``network``, ``stays_connected``; both are true by default."""
    document = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))
    found: Mapping[str, Any] = document.get("tool", {}).get("ingestd", {}).get("connector", {})
    return found


# ------------------------------------------------------------------------------------------------- the plug-in of pytest


_counts: dict[str, dict[str, int]] = {"passed": {}, "failed": {}}
_suites: dict[str, str] = {}


def pytest_collection_modifyitems(items: Sequence[Any]) -> None:
    """Note the suite of each test."""
    for item in items:
        bases = inspect.getmro(item.cls) if item.cls is not None else ()
        suite = next((_SUITES[base.__name__] for base in bases if base.__name__ in _SUITES), "own")
        _suites[item.nodeid] = suite


def pytest_runtest_logreport(report: Any) -> None:
    """Count a passed or failed test. Skipped tests are not counted."""
    suite = _suites.get(report.nodeid, "own")
    if report.failed:
        _counts["failed"][suite] = _counts["failed"].get(suite, 0) + 1
    elif report.when == "call" and report.passed:
        _counts["passed"][suite] = _counts["passed"].get(suite, 0) + 1


def pytest_collectreport(report: Any) -> None:
    """Count a module that can't be imported as a failure of the kit."""
    if report.failed:
        _counts["failed"]["kit"] = _counts["failed"].get("kit", 0) + 1


def pytest_sessionfinish() -> None:
    """Write the report."""
    if path := os.environ.get(REPORT):
        Path(path).write_text(json.dumps(_counts), encoding="utf-8")
