"""A notification of PostgreSQL wakes the pipeline; a lost connection is replaced, and a refused login is not repeated."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from connectors.database import DatabaseConnector, DatabaseOptions, notifications
from connectors.database.notifications import INTERVAL_SECONDS, STOP_SECONDS
from ingestd.sdk import SourceBroken, SourceContext
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.private_servers import pgbouncer

DEADLINE = 30.0
CHANNEL = 'Parts "of" the rig'


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgresql_server() as started:
        with started.connect() as connection:
            connection.execute("CREATE TABLE p (id int PRIMARY KEY)")
        yield started


class Wakes:
    """Counts wake-ups; a test can wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self._pending = threading.Semaphore(0)

    def __call__(self) -> None:
        self.count += 1
        self._pending.release()

    def next(self) -> None:
        """Wait for a wake-up."""
        assert self._pending.acquire(timeout=DEADLINE), "nothing woke the pipeline"

    def drain(self) -> None:
        while self._pending.acquire(blocking=False):
            pass


class Reports:
    """Collects the sentences of a source; a test can wait for one."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, sentence: str) -> None:
        with self._changed:
            self.sentences.append(sentence)
            self._changed.notify_all()

    def wait_for(self, words: str, count: int = 1) -> str:
        def found() -> list[str]:
            return [sentence for sentence in self.sentences if words in sentence]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= count, DEADLINE), self.sentences
            return found()[-1]


def source(url: str, reports: Reports | None = None, **options: Any) -> DatabaseConnector:
    settings = DatabaseOptions.model_validate({"url": url, "table": "p", "notify": CHANNEL} | options)
    context = SourceContext(pipeline="test", base=Path(), now=lambda: 0.0, log=reports or Reports())
    return DatabaseConnector(settings, context)


@contextmanager
def listening(connector: DatabaseConnector, wakes: Wakes) -> Iterator[None]:
    """Listen, after the wake-up of the first connection and the pause after it."""
    with connector.listen(wakes):
        wakes.next()
        yield


def notify(server: PostgresServer, count: int = 1) -> None:
    with server.connect() as connection:
        for number in range(count):
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(number)))


def backends(server: PostgresServer) -> list[int]:
    with server.connect() as connection:
        rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'").fetchall()
    return [pid for (pid,) in rows]


def test_a_notification_wakes_the_pipeline(server: PostgresServer) -> None:
    wakes = Wakes()
    connector = source(server.url)
    with listening(connector, wakes):
        notify(server)
        wakes.next()
        assert wakes.count == 2
        where = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        (sentence,) = connector.notices()
        assert sentence == f"Listens on channel {CHANNEL} of {where} since 1970-01-01 00:00:00 UTC."
        assert sentence in str(connector.explain("p"))


def test_a_source_without_the_setting_opens_no_connection(server: PostgresServer) -> None:
    wakes = Wakes()
    with source(server.url, notify=None).listen(wakes):
        notify(server)
        assert backends(server) == []
    assert wakes.count == 0


def test_a_storm_of_notifications_is_a_bounded_number_of_wake_ups(server: PostgresServer) -> None:
    wakes = Wakes()
    with listening(source(server.url), wakes):
        started = time.monotonic()
        notify(server, 10_000)
        wakes.next()
        lasted = time.monotonic() - started
        assert wakes.count <= 3 + lasted / INTERVAL_SECONDS
        wakes.drain()
        notify(server)  # the last notification of a storm is not swallowed
        wakes.next()


def test_a_terminated_connection_is_replaced_and_wakes_because_notifications_may_be_lost(
    server: PostgresServer,
) -> None:
    wakes, reports = Wakes(), Reports()
    with listening(source(server.url, reports), wakes):
        (backend,) = backends(server)
        with server.connect() as connection, connection.transaction():
            connection.execute("SELECT pg_terminate_backend(%s)", (backend,))
        notify(server)
        wakes.next()
        lost = reports.wait_for("Does not listen")
        assert "can't be reached" in lost
        assert "Only the schedule starts readings now" in lost
        reports.wait_for("Listens on", 2)
        notify(server)
        wakes.next()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may stop a process of another user")
def test_a_frozen_server_is_noticed_and_its_connection_is_replaced(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "CHECK_SECONDS", 0.2)
    wakes, reports = Wakes(), Reports()
    with listening(source(server.url, reports, connect_timeout_seconds=1), wakes):
        (backend,) = backends(server)
        os.kill(backend, signal.SIGSTOP)
        try:
            assert "has not responded for 1 seconds" in reports.wait_for("Does not listen")
            reports.wait_for("Listens on", 2)
            wakes.drain()
            with server.connect() as connection:
                connection.execute("SELECT pg_notify(%s, '')", (CHANNEL,))
            wakes.next()
        finally:
            os.kill(backend, signal.SIGCONT)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may stop a process of another user")
def test_the_listener_ends_in_time_while_the_server_is_frozen(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "CHECK_SECONDS", 0.2)
    wakes = Wakes()
    with listening(source(server.url, connect_timeout_seconds=60), wakes):
        (backend,) = backends(server)
        os.kill(backend, signal.SIGSTOP)
        started = time.monotonic()
    try:
        assert time.monotonic() - started < STOP_SECONDS
    finally:
        os.kill(backend, signal.SIGCONT)


def test_the_end_of_the_watch_closes_the_connection_and_the_thread(server: PostgresServer) -> None:
    with listening(source(server.url), Wakes()):
        (backend,) = backends(server)
        started = time.monotonic()
    assert time.monotonic() - started < STOP_SECONDS
    assert not [thread for thread in threading.enumerate() if thread.name == "notifications"]
    with server.connect() as connection:
        gone = "SELECT pg_terminate_backend(%s, 10000) OR count(*) = 0 FROM pg_stat_activity WHERE pid = %s"
        assert connection.execute(gone, (backend, backend)).fetchone() == (True,)


def test_the_listener_ends_in_time_while_it_waits_for_the_next_attempt() -> None:
    reports = Reports()
    with source("postgresql://postgres@127.0.0.1:1/test", reports).listen(Wakes()):
        reports.wait_for("can't be reached")
        started = time.monotonic()
    assert time.monotonic() - started < STOP_SECONDS


def test_a_refused_login_of_a_reading_is_not_repeated_by_the_listener(server: PostgresServer) -> None:
    with server.connect() as connection:
        connection.execute("DROP ROLE IF EXISTS closed")
        connection.execute("CREATE ROLE closed NOLOGIN")
    reports, wakes = Reports(), Wakes()
    connector = source(server.url.replace("postgres@", "closed:s3cret@"), reports)
    log = server.data.parent / "log"
    before = log.read_text().count("not permitted to log in")
    (partition,) = connector.partitions()
    with connector.listen(wakes):
        for _ in range(3):
            with pytest.raises(SourceBroken, match="does not try again"):
                list(connector.read(partition, None))
        refused = reports.wait_for("Does not listen")
        assert "does not try again" in refused
        assert "s3cret" not in refused
        assert log.read_text().count("not permitted to log in") == before + 1
        with server.connect() as connection:
            connection.execute("ALTER ROLE closed LOGIN")
        connector.reset()
        reports.wait_for("Listens on")
        wakes.next()


def test_a_pooler_is_explained_and_the_servers_own_address_is_used(server: PostgresServer) -> None:
    target = psycopg.conninfo.make_conninfo(server.url)
    with pgbouncer(target, {"postgres": "right"}) as pooler:
        url = f"postgresql://postgres:right@{pooler.host}/postgres"
        reports = Reports()
        with source(url, reports).listen(Wakes()):
            sentence = reports.wait_for("Does not listen")
        assert "is the address of a pooler such as PgBouncer" in sentence
        assert "Set notify_url to the server's own address" in sentence
        (step,) = [step for step in source(url).verify() if step.name == "notify"]
        assert step.outcome == "failed"
        assert "Set notify_url" in step.sentence
        wakes = Wakes()
        direct = source(url, notify_url=server.url)
        with listening(direct, wakes):
            notify(server)
            wakes.next()
        (step,) = [step for step in direct.verify() if step.name == "notify"]
        own = urlsplit(server.url)
        assert step.sentence.startswith(f"postgresql://{own.netloc}/postgres accepts LISTEN on channel {CHANNEL};")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"url": "sqlite:///p.db", "notify": "c"}, "notify is for PostgreSQL"),
        ({"url": "postgresql://h/d", "notify": "c" * 64}, "has at most 63 bytes"),
        ({"url": "postgresql://h/d", "notify_url": "postgresql://h/d"}, "notify_url is for notify"),
        ({"url": "postgresql://h/d", "notify": "c", "notify_url": "sqlite:///p.db"}, "notify_url is for PostgreSQL"),
    ],
)
def test_a_setting_that_does_not_fit_the_database_is_a_mistake(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        DatabaseOptions.model_validate({"table": "p"} | options)
