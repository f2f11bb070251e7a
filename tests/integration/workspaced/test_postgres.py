"""Failures that only PostgreSQL can cause: unreachable, outdated schema, shared with other hosts."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest

from ingestd.process.postgres_address import PostgresAddress, postgres_address
from tests.support.later_release import later_release
from tests.support.postgres_databases import Databases
from tests.support.running_store import running_store
from workspaced.app import running
from workspaced.core.problems import UnavailableProblem
from workspaced.security import key_store as access
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage import migrations, postgres_schema
from workspaced.storage.factory import migrate, transact
from workspaced.storage.port import StorageUnusable, Transaction
from workspaced.storage.postgres_connection import connect
from workspaced.storage.store import Store

DEADLINE_SECONDS = 30
_CHANGE = "UPDATE data_sink_entry_numbers SET scramble = scramble"


@pytest.fixture
def empty(postgres_databases: Databases) -> Iterator[PostgresAddress]:
    with postgres_databases.empty() as url:
        yield postgres_address(url)


def _hang_up(address: PostgresAddress, which: str = "true") -> None:
    """End every other connection to the database, as a restart of the server does; or those that a condition selects."""
    with psycopg.connect(**dict(address.parameters), autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = current_database() AND pid <> pg_backend_pid() AND {which}".encode()
        )


async def test_after_lost_connections_reads_writes_and_notifications_continue(
    database: PostgresAddress, tmp_path: Path
) -> None:
    async with running_store(database, tmp_path) as store:
        woken = asyncio.Event()
        store.listen("channel", woken.set)
        for _ in range(2):
            await asyncio.gather(*(store.read(lambda reader: reader.one("SELECT 1")) for _ in range(4)))
            await store.write(lambda tx: tx.run(_CHANGE))
            async with asyncio.timeout(DEADLINE_SECONDS):
                woken.clear()
                while not woken.is_set():
                    await store.write(lambda tx: tx.notify("channel"))
            await asyncio.to_thread(_hang_up, database)
        assert await store.read(lambda reader: reader.one("SELECT 1")) == (1,)
        assert await store.write(lambda tx: tx.run(_CHANGE)) == 1


async def test_work_is_repeated_after_its_connection_is_lost(database: PostgresAddress, tmp_path: Path) -> None:
    runs: list[int] = []

    def work(tx: Transaction) -> int:
        runs.append(1)
        tx.run("INSERT INTO fixed_setting (name, value) VALUES ('once', 'v')")
        if len(runs) == 1:
            _hang_up(database)
        return len(tx.all("SELECT name FROM fixed_setting"))

    async with running_store(database, tmp_path) as store:
        assert await store.write(work) == 1
    assert len(runs) == 2


async def test_a_commit_of_one_process_wakes_the_other(database: PostgresAddress, tmp_path: Path) -> None:
    async with running_store(database, tmp_path) as here, running_store(database, tmp_path) as there:
        woken = asyncio.Event()
        here.listen("channel", woken.set)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not woken.is_set():
                await there.write(lambda tx: tx.notify("channel"))


async def test_a_service_with_an_outdated_database_names_the_command_and_works_after_it(
    empty: PostgresAddress, tmp_path: Path
) -> None:
    # contract P3
    settings = WorkspacedSettings(data=tmp_path / "data", postgres=empty, readers=2)
    with pytest.raises(UnavailableProblem, match="Run `workspaced migrate`"):
        transact(empty, lambda tx: tx.one("SELECT 1"))
    async with running(settings) as app:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://s") as http:
            refused = await http.get("/readyz")
            assert (refused.status_code, refused.json()["code"]) == (503, "schema_behind")
            assert "workspaced migrate" in refused.json()["detail"]
            assert (await http.get("/v1/workspace", headers={"x-api-key": "k"})).status_code == 503
            assert (await http.get("/healthz")).status_code == 200
            assert migrate(empty) == (0, migrations.head())
            async with asyncio.timeout(DEADLINE_SECONDS):
                while (
                    await http.get("/readyz")
                ).status_code == 503:  # it polls the database, so it lets other tasks run
                    pass
            assert (await http.get("/readyz")).status_code == 200
            assert (await http.get("/v1/workspace", headers={"x-api-key": "k"})).status_code == 401


def _insert_lease(tx: Transaction, *, job: str) -> int:
    return tx.run("INSERT INTO job_lease (job, holder, ends_at) VALUES (:job, '', 0)", {"job": job})


@pytest.fixture
def behind(empty: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> PostgresAddress:
    """Return a database that lacks a step, which needs a table alone."""
    migrate(empty)
    steps = (
        *migrations.steps("postgres"),
        migrations.MigrationStep(9_999, 1, "ALTER TABLE workspace ADD COLUMN more bigint"),
    )
    monkeypatch.setattr(migrations, "steps", lambda _dialect: steps)
    monkeypatch.setattr("workspaced.storage.postgres_schema._LOCK_WAIT", "100ms")
    return empty


def test_a_migration_that_waits_for_a_reader_lets_others_read_and_is_done_after_it(behind: PostgresAddress) -> None:
    # contract P3
    waited: list[str] = []
    with connect(behind) as reader, connect(behind) as other:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM workspace")

        def on_wait(sentence: str) -> None:
            waited.append(sentence)
            other.execute("SELECT count(*) FROM workspace")  # formerly it waited after the migration
            reader.execute("COMMIT")

        assert migrate(behind, on_wait=on_wait)[1] == 9_999
        assert len(waited) == 1
        assert f"process {reader.info.backend_pid} of {reader.info.user}" in waited[0]
        assert other.execute("SELECT count(more) FROM workspace").fetchone() == (0,)


def test_a_migration_that_waits_for_too_long_names_the_session_that_it_waits_for(behind: PostgresAddress) -> None:
    # contract P3
    with connect(behind) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM workspace")
        sentence = rf"process {reader.info.backend_pid} of .* Then run `workspaced migrate` again"
        with pytest.raises(StorageUnusable, match=sentence):
            postgres_schema.migrate(behind, give_up_seconds=0)


async def test_a_step_that_excludes_older_programs_waits_for_their_hosts_and_names_them(
    database: PostgresAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract P3
    known = migrations.steps("postgres")
    new = known[-1].number + 1
    steps = (*known, migrations.MigrationStep(new, new, "CREATE TABLE after_it (one bigint)"))
    async with running_store(database, tmp_path) as store:
        await store.write(lambda tx: tx.run(_CHANGE))
        monkeypatch.setattr(migrations, "steps", lambda _dialect: steps)
        sentence = (
            rf"that knows schema {known[-1].number} on 127.0.0.1 \(workspaced\).* Stop these hosts, or upgrade them"
        )
        with pytest.raises(StorageUnusable, match=sentence):
            await asyncio.to_thread(postgres_schema.migrate, database, give_up_seconds=0)
        monkeypatch.undo()
        await store.write(lambda tx: tx.run(_CHANGE))  # nothing of the step was done


async def test_an_older_program_does_not_write_after_the_step_that_excludes_it(
    empty: PostgresAddress, tmp_path: Path
) -> None:
    # contract P3
    """The sessions of two writing hosts are ended again and again, until the step finds none."""
    migrate(empty)
    count = "SELECT count(*) FROM job_lease"
    known = migrations.head()
    release = later_release(tmp_path / "later", f"-- oldest program: {known + 1}\nCREATE TABLE before_it AS {count};\n")

    async def write_until_refused(store: Store, host: int) -> str:
        for number in itertools.count():
            work = partial(_insert_lease, job=f"{host}.{number}")
            try:
                await store.write(work)
            except UnavailableProblem as problem:
                if problem.code == "schema_ahead":
                    return problem.detail
            else:
                written_once[host].set()
        raise AssertionError("the numbers do not end")

    written_once = [asyncio.Event(), asyncio.Event()]
    async with AsyncExitStack() as running_hosts:
        stores = [await running_hosts.enter_async_context(running_store(empty, tmp_path)) for _ in range(2)]
        writing = [asyncio.create_task(write_until_refused(store, host)) for host, store in enumerate(stores)]
        for one in written_once:
            await one.wait()
        migrating = asyncio.create_task(asyncio.to_thread(release.run, "migrate", "--database", str(empty)))
        while not migrating.done():
            await asyncio.to_thread(_hang_up, empty, "pid IN (SELECT pid FROM pg_locks WHERE mode = 'ShareLock')")
        assert migrating.result().returncode == 0, migrating.result().stderr
        _hang_up(empty)
        await asyncio.wait(writing)
        assert {f"This program can use schemas {known} to {known}," in task.result() for task in writing} == {True}
    with psycopg.connect(str(empty)) as connection:
        written = connection.execute(f"SELECT (SELECT * FROM before_it), ({count})").fetchone()
    assert written
    assert written[0] == written[1] > 0


def test_of_many_concurrent_migrations_one_is_executed_and_all_succeed(empty: PostgresAddress) -> None:
    # contract P3
    with ThreadPoolExecutor(6) as pool:
        went = list(pool.map(migrate, [empty] * 6))
    assert sorted(went) == [(0, migrations.head())] + [(migrations.head(), migrations.head())] * 5


def test_both_databases_have_the_same_steps_and_the_same_tables(database: PostgresAddress, tmp_path: Path) -> None:
    # contract P2
    numbers = {
        dialect: [(step.number, step.oldest_program) for step in migrations.steps(dialect)]
        for dialect in ("sqlite", "postgres")
    }
    assert numbers["postgres"] == numbers["sqlite"]
    assert all(oldest < number for number, oldest in numbers["sqlite"][1:])  # the release before can use it
    path = tmp_path / "s.db"
    migrate(path)
    there = transact(
        database,
        lambda tx: tx.all(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        ),
    )
    here = transact(
        path,
        lambda tx: [
            (table, row[1])
            for (table,) in tx.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            for row in tx.all(f"PRAGMA table_info({table})")
        ],
    )
    kept_otherwise = {
        ("data_sink_entry_numbers", "last_number"),
        ("event_numbers", "one"),
        ("event_numbers", "last_number"),
    }
    shared_by_hosts = {column for column in there if column[0] == "rate_bucket"}
    assert set(here) - kept_otherwise == set(there) - shared_by_hosts


def test_every_text_compares_byte_by_byte_and_every_number_is_64_bits_wide(database: PostgresAddress) -> None:
    # contract P2
    columns = transact(
        database,
        lambda tx: tx.all(
            "SELECT table_name, column_name, data_type, collation_name FROM information_schema.columns "
            "WHERE table_schema = 'public'"
        ),
    )
    assert len(columns) > 100
    assert [row for row in columns if row[2] == "text" and row[3] != "C"] == []
    assert {row[2] for row in columns} <= {"text", "bigint", "smallint", "integer", "bytea", "double precision"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:hunter2hunter2@127.0.0.1:1/nowhere",
        "postgresql://127.0.0.1:1/nowhere?password=hunter2hunter2",
        "postgresql://someone:hunter2hunter2@127.0.0.1/nowhere?no_such_parameter=1",
    ],
)
def test_an_unreachable_database_is_named_without_its_password(url: str) -> None:
    address = postgres_address(url)
    attempts: list[Callable[[], object]] = [
        lambda: transact(address, lambda tx: tx.one("SELECT 1")),
        lambda: migrate(address),
    ]
    for attempt in attempts:
        with pytest.raises(UnavailableProblem, match=re.escape("/nowhere can't be used: ")) as caught:
            attempt()
        assert "hunter2" not in f"{caught.value} {caught.value.detail} {caught.value.__context__!r} {address!r}"


def test_a_database_of_a_newer_version_is_unchanged(postgres_databases: Databases) -> None:
    # contract P3
    with postgres_databases.migrated() as url:
        address = postgres_address(url)
        step = "INSERT INTO schema_step (number, oldest_program, at) VALUES (9999, 9999, 0)"
        transact(address, lambda tx: tx.run(step))
        try:
            with pytest.raises(StorageUnusable, match="written by a newer workspaced"):
                migrate(address)
            with pytest.raises(UnavailableProblem, match="written by a newer workspaced"):
                transact(address, lambda tx: tx.one("SELECT 1"))
        finally:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DELETE FROM schema_step WHERE number = 9999")


async def test_a_stored_response_is_returned_by_another_process_while_the_first_works(
    database: PostgresAddress, tmp_path: Path
) -> None:
    # contract G18
    """Two processes get the same request concurrently: one applies it, the other repeats its response."""
    settings = WorkspacedSettings(data=tmp_path / "data", postgres=database, readers=2)
    key = transact(database, lambda tx: access.create_key(tx, name="k", role="owner", now=0, expires_at=None))
    headers = {"x-api-key": key, "ClientId": "tests"}
    async with running(settings) as one, running(settings) as two:
        clients = [
            httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://s", headers=headers)
            for app in (one, two)
        ]
        for number in range(5):
            responses = await asyncio.gather(
                *(
                    client.post("/v1/workspace", json={"label": "w"}, headers={"Idempotency-Key": f"k{number}"})
                    for client in clients
                )
            )
            assert {response.status_code for response in responses} == {201}
            assert len({response.json()["id"] for response in responses}) == 1
        for client in clients:
            await client.aclose()
