"""Shipments and leases in a PostgreSQL database. Its servers restart, freeze, change, or refuse something."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from ingestd.process.redaction import redact_text
from ingestd.settings.standby import StandbySettings
from ingestd.standby import database_place
from ingestd.standby.database import DatabaseUnavailable, StandbyDatabase
from ingestd.standby.database_leases import DatabaseLeases
from ingestd.standby.database_url import schema_of
from ingestd.standby.lease_store import LeaseUnavailable
from ingestd.standby.place import Place, PlaceUnavailable, open_place
from tests.support.postgres_databases import Databases
from tests.support.postgres_server import PostgresServer, ReplicatedServer, postgresql_server, replicated_server

STATEMENT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 30.0
"""Two statements and a login at each of two hosts, on a loaded machine. The default of TCP is 15 minutes."""

CANCEL_WAITS = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%shipment_object%'
AND pg_sleep(0.05) IS NOT NULL
"""


@pytest.fixture(autouse=True)
def _short_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_place, "_STATEMENT_SECONDS", STATEMENT_SECONDS)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgresql_server() as started:
        yield started


@pytest.fixture(scope="module")
def replicated() -> Iterator[ReplicatedServer]:
    with replicated_server() as started:
        yield started


@contextmanager
def opened(url: str) -> Iterator[Place]:
    place = open_place(url, StandbySettings(), base=Path("/"))
    try:
        yield place
    finally:
        place.close()


@contextmanager
def ends_in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LONGEST_WAIT_SECONDS


def test_a_restarted_server_is_not_noticed(server: PostgresServer) -> None:
    with opened(server.url) as place:
        place.put("blocks/a", b"1")
        server.crash()
        assert place.get("blocks/a") == b"1"
        with server.stopped(), pytest.raises(PlaceUnavailable, match="can't be used"):
            place.get("blocks/a")
        assert place.get("blocks/a") == b"1"


async def test_a_frozen_server_ends_no_daemon_and_no_wait_for_ever(server: PostgresServer) -> None:
    leases = DatabaseLeases(schema_of(server.url), seconds=4)
    with opened(server.url) as place:
        place.put("blocks/a", b"1")
        await leases.take("w", holder="a", seconds=4, above=0)
        with server.frozen(), ends_in_time():
            with pytest.raises(PlaceUnavailable):
                place.put("blocks/b", b"2")
            with pytest.raises(LeaseUnavailable):
                await leases.renew("w", holder="a", seconds=4, epoch=2)
        assert place.get("blocks/a") == b"1"
        assert (await leases.renew("w", holder="a", seconds=4, epoch=2)).lease is not None
    leases.close()


async def test_the_host_that_accepts_writes_is_used_also_after_a_promotion() -> None:
    with replicated_server() as replicated:
        primary, standby = replicated.primary, replicated.standby
        hosts = f"{standby.address}:{standby.port},{primary.address}:{primary.port}"
        url = f"postgresql://postgres@{hosts}/postgres"
        leases = DatabaseLeases(schema_of(url), seconds=20)
        with opened(url) as place, ends_in_time():
            place.put("blocks/a", b"1")
            taken = (await leases.take("w", holder="a", seconds=20, above=0)).lease
            assert taken is not None
            primary.kill()
            with standby.connect() as connection:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            standby.run("pg_ctl", "-w", "promote")
            assert place.get("blocks/a") == b"1"
            place.put("blocks/a", b"2")
            assert (await leases.renew("w", holder="a", seconds=20, epoch=taken.epoch)).lease is not None
        leases.close()


def test_another_server_of_the_url_is_used_only_if_it_may_be(replicated: ReplicatedServer) -> None:
    standby = replicated.standby
    with opened(f"{standby.url}?target_session_attrs=read-write") as place, pytest.raises(PlaceUnavailable):
        place.get("identity")


def test_what_no_synchronous_standby_has_is_not_stored(
    replicated: ReplicatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(replicated.url) as place, replicated.primary.connect() as operator:
        place.put("blocks/a", b"1")
        with replicated.standby.stopped():
            with ends_in_time(), pytest.raises(PlaceUnavailable, match="the server sent nothing"):
                place.put("blocks/b", b"2")
            monkeypatch.setattr(database_place, "_STATEMENT_SECONDS", 60.0)
            with opened(replicated.url) as patient, ThreadPoolExecutor(1) as pool:
                storing = pool.submit(patient.put, "blocks/c", b"3")
                while not storing.done():  # the server still waits for the first one, too
                    operator.execute(CANCEL_WAITS)
                with pytest.raises(PlaceUnavailable, match="synchronous standby"):
                    storing.result()
        place.put("blocks/a", b"3")


def test_a_user_without_rights_gets_a_sentence_with_what_an_administrator_does(postgres_databases: Databases) -> None:
    with postgres_databases.empty() as url, psycopg.connect(url, autocommit=True) as admin:
        user = f"standby_{admin.info.dbname}"
        admin.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'hunter22'".encode())
        try:
            own = url.replace("postgres@", f"{user}:hunter22@").replace("postgresql://", "postgresql://", 1)
            with opened(f"{own}?schema=plant") as place:
                with pytest.raises(PlaceUnavailable, match="administrator create the schema plant") as raised:
                    place.get("identity")
                assert "hunter22" not in f"{raised.value}{place.shown}"
                admin.execute(f"CREATE SCHEMA plant AUTHORIZATION {user}".encode())
                place.put("blocks/a", b"1")
                assert place.get("blocks/a") == b"1"
                assert place.shown.endswith("?schema=plant")
        finally:
            admin.execute(f"DROP OWNED BY {user}".encode())
            admin.execute(f"DROP ROLE {user}".encode())


def test_configurations_share_a_database_by_schemas(postgres_databases: Databases) -> None:
    with postgres_databases.empty() as url, opened(url) as one, opened(f"{url}?schema=other") as other:
        one.put("blocks/a", b"1")
        assert other.get("blocks/a") is None
        assert list(other.names()) == []


def test_hosts_that_start_at_once_create_the_tables_once(postgres_databases: Databases) -> None:
    with postgres_databases.empty() as url, ThreadPoolExecutor(6) as pool:
        places = [open_place(url, StandbySettings(), base=Path("/")) for _ in range(6)]
        stored = list(pool.map(lambda place: place.put("identity", b"x", new=True), places))
        assert sorted(stored) == [False] * 5 + [True]
        for place in places:
            place.close()


async def test_an_epoch_that_a_host_knows_is_not_granted_again_by_an_older_row(postgres_databases: Databases) -> None:
    with postgres_databases.empty() as url:
        leases = DatabaseLeases(schema_of(url), seconds=60)
        granted = [
            (await leases.take(writer, holder="a", seconds=60, above=above)).lease
            for writer, above in (("v", 7), ("w", 0), ("w", 7), ("w", 7))
        ]
        assert [lease.epoch for lease in granted if lease is not None] == [8, 2, 8, 9]
        leases.close()


def test_no_password_is_shown() -> None:
    url = "postgresql://u:s3cret%2Fword@127.0.0.1:9,127.0.0.1:10/w?schema=a"
    database = StandbyDatabase(schema_of(url), statement_seconds=1)
    with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1:9,127\.0\.0\.1:10/w") as raised:
        database.rows("find_lease", {"writer": "w"})
    assert "s3cret" not in f"{raised.value!r} {database.schema!r} {database.schema}"
    assert "s3cret" not in redact_text(f"a library logs s3cret/word and {url}")
