"""Settings of all tests: property tests without deadlines, and no unnoticed skip in CI."""

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

# The machines that run these are shared, so a slow example is no failure.
# CI uses fixed examples, so that only the change under test can fail; other runs draw new ones, and more of them.
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
# Clients trust one authority, which has no key any more: loading those of the system takes longer than most requests.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("support") / "authority.pem")


@pytest.fixture(scope="session")
def sftp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    """A server for all tests of a worker; each uses a folder of its own."""
    from tests.support.sftp_server import SftpServer

    server = SftpServer(tmp_path_factory.mktemp("sftp") / "server")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[ObjectServer]:
    """A server for all tests of a worker. Others may have left objects: use a prefix of its own, or `object_server`."""
    from tests.support.object_server import ObjectServer

    server = ObjectServer()
    yield server
    server.stop()


@pytest.fixture
def object_server(bucket_server: ObjectServer) -> ObjectServer:
    """The same server with an empty bucket."""
    bucket_server.clear()
    return bucket_server


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[Databases]:
    """Databases for all tests of a worker."""
    from tests.support.postgres_databases import databases

    with databases() as made:
        yield made


@pytest.fixture(autouse=True)
def _no_secret_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known secrets apply to a whole process, and one may equal a number in the output of the next test."""
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_known_pattern", None)


# Their files may take more than half a minute.
FIRST = ("model", "simulation", "faults", "process", "campaign", "browser", "growth", "property", "packaging")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the folders of long tests first: a long file at the end keeps one process of several busy."""
    items.sort(key=lambda item: item.nodeid.split("/")[1] not in FIRST)


def pytest_collection_finish() -> None:
    """Collect ten thousand tests without their garbage collections, and exclude them from later ones."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Say before a run of all tests which of them will be skipped. No garbage is collected until the tests are."""
    gc.disable()
    _write_skipped(session.config)


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Repeat it at the end."""
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
    """Installs distributions with plug-ins for one test."""
    return Installer(tmp_path / "installed", monkeypatch)
