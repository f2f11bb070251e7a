"""Settings and fixtures of all tests. Property tests have no deadlines, and in CI a skipped test fails."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from ingestd.process import redaction
from tests.support.needed_programs import missing_needs, skipped_tests
from tests.support.plugins import Installer

if TYPE_CHECKING:
    from tests.support.object_server import ObjectServer
    from tests.support.postgres_databases import Databases
    from tests.support.sftp_server import SftpServer

# The tests run on shared machines, so a slow example is no failure.
# CI uses fixed examples, so that only the tested change can cause a failure. Other runs use more examples, and new ones.
IN_CI = os.environ.get("CI") == "true"
settings.register_profile(
    "shared",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=IN_CI,
    max_examples=40 if IN_CI else 100,
)
settings.load_profile("shared")
# Commands print local times, and the documentation shows UTC.
os.environ["TZ"] = "UTC"
# Clients trust only one authority (its key was deleted). Loading the system's authorities takes longer than most requests.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("support") / "authority.pem")


@pytest.fixture(scope="session")
def sftp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    """Run a server for all tests of a worker. Each test uses its own folder."""
    from tests.support.sftp_server import SftpServer

    server = SftpServer(tmp_path_factory.mktemp("sftp") / "server")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[ObjectServer]:
    """Run a server for all tests of a worker. Use a new prefix, because other tests may have left objects, or `object_server`."""
    from tests.support.object_server import ObjectServer

    server = ObjectServer()
    yield server
    server.stop()


@pytest.fixture
def object_server(bucket_server: ObjectServer) -> ObjectServer:
    """Return the server of `bucket_server`, with an empty bucket."""
    bucket_server.clear()
    return bucket_server


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[Databases]:
    """Yield a source of PostgreSQL databases for all tests of a worker."""
    from tests.support.postgres_databases import databases

    with databases() as made:
        yield made


@pytest.fixture(autouse=True)
def _no_secret_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the known secrets: they are global, and a secret of one test may equal a number in the output of the next."""
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_known_pattern", None)


# Folders with test files that may take more than half a minute.
FIRST = ("model", "simulation", "faults", "process", "campaign", "browser", "growth", "property", "packaging")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the folders of long tests first. A long file at the end would keep one process busy while all other processes wait."""
    items.sort(key=lambda item: item.nodeid.split("/")[1] not in FIRST)


def pytest_collection_finish() -> None:
    """Enable garbage collection again after the tests are collected, and exclude the existing objects from it."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Print before a run of all tests which tests will be skipped. Disable garbage collection until the tests are collected."""
    gc.disable()
    _write_skipped(session.config)


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Print the skipped tests again at the end."""
    _write_skipped(config)


def _write_skipped(config: pytest.Config) -> None:
    runs_all = config.args_source is config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    needs = missing_needs() if runs_all else []
    for line in skipped_tests(needs) if needs else ():
        config.get_terminal_writer().line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: pytest.TestReport = yield  # type: ignore[assignment]
    excused = hasattr(report, "wasxfail") or item.get_closest_marker("workplace_data")
    if IN_CI and report.skipped and not excused:
        report.outcome = "failed"
        report.longrepr = f"skipped, and CI skips nothing: {report.longrepr}"
    return report  # type: ignore[return-value]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report: pytest.CollectReport = yield  # type: ignore[assignment]
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, and CI skips nothing: {report.longrepr}"
    return report  # type: ignore[return-value]


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    """Return an installer of distributions with plug-ins, for one test."""
    return Installer(tmp_path / "installed", monkeypatch)
