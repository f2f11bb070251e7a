"""A PostgreSQL that stops to respond, and a synchronous standby that is missing."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from ingestd.process.postgres_address import postgres_address
from tests.support.postgres_server import PostgresServer, ReplicatedServer, replicated_server
from tests.support.running_store import running_store
from workspaced.app import Application, running
from workspaced.core.problems import UnavailableProblem
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage import postgres_schema
from workspaced.storage.backup import back_up
from workspaced.storage.factory import migrate, transact
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.postgres_connection import PostgresConnection
from workspaced.storage.store import Store

DEADLINE_SECONDS = 60
_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def replicated() -> Iterator[ReplicatedServer]:
    with replicated_server() as servers:
        migrate(postgres_address(servers.url))
        yield servers


def _put(name: str) -> Callable[[Transaction], bool]:
    """Return work that stores a name, and returns whether it was new."""

    def work(tx: Transaction) -> bool:
        statement = "INSERT INTO fixed_setting (name, value) VALUES (:name, 'v') ON CONFLICT DO NOTHING"
        return tx.run(statement, {"name": name}) == 1

    return work


def _names(reader: ReadTransaction) -> set[str]:
    return {row[0] for row in reader.all("SELECT name FROM fixed_setting")}


def _waiting_commit(server: PostgresServer) -> int:
    """Return the process of a commit that waits for the standby."""
    until = time.monotonic() + DEADLINE_SECONDS
    with server.connect() as connection:
        while (found := connection.execute(_WAITING).fetchone()) is None:
            assert time.monotonic() < until, "no commit waits"
            time.sleep(0.02)  # a server does not signal it
    return int(found[0])


async def _until_ready(checked: Store | Application) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            with suppress(UnavailableProblem):
                return await checked.check()


@asynccontextmanager
async def _limited(server: PostgresServer) -> AsyncIterator[None]:
    """Fail after the deadline, and crash the server then: a store that waits for it could not stop."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield
    except TimeoutError:
        server.crash()
        raise


@pytest.mark.parametrize("function", ["pg_cancel_backend", "pg_terminate_backend"])
async def test_writes_with_an_ended_wait_for_the_standby_are_503_until_a_repetition_is_replicated(
    replicated: ReplicatedServer, tmp_path: Path, function: str
) -> None:
    # contract P2
    names = [f"{function} {number}" for number in range(3)]
    async with running_store(postgres_address(replicated.url), tmp_path) as store:
        await store.check()
        with replicated.standby.frozen():
            writing = [asyncio.create_task(store.write(_put(name))) for name in names]
            waiting = await asyncio.to_thread(_waiting_commit, replicated.primary)
            with replicated.primary.connect() as operator:
                operator.execute(f"SELECT {function}(%s)".encode(), [waiting])
            problems = await asyncio.gather(*writing, return_exceptions=True)
            assert [getattr(problem, "code", problem) for problem in problems] == ["storage_lost"] * 3
            repeating = asyncio.create_task(store.write(_put(names[0])))
            await asyncio.to_thread(_waiting_commit, replicated.primary)  # although the repetition changes nothing
            assert not repeating.done()
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await repeating is False


async def test_a_service_starts_although_the_standby_is_missing_and_is_ready_with_it(
    replicated: ReplicatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract P2
    monkeypatch.setattr(PostgresConnection, "silent_seconds", DEADLINE_SECONDS)
    monkeypatch.setattr("workspaced.storage.startup._ATTEMPT_SECONDS", 0.5)
    settings = WorkspacedSettings(data=tmp_path / "data", postgres=postgres_address(replicated.url), readers=2)
    with ExitStack() as missing:
        missing.enter_context(replicated.standby.frozen())
        begun = time.monotonic()
        async with running(settings) as app:
            assert time.monotonic() - begun <= DEADLINE_SECONDS / 2
            with pytest.raises(UnavailableProblem):
                await app.check()
            missing.close()
            await _until_ready(app)


async def test_a_frozen_server_is_given_up_for_the_next_host_and_not_used_again_after_it_thaws(tmp_path: Path) -> None:
    # contract P2
    with replicated_server() as servers:
        address = postgres_address(f"{servers.url}?connect_timeout=2")
        migrate(address)
        async with running_store(address, tmp_path) as store, _limited(servers.primary):
            woken = asyncio.Event()
            store.listen("channel", woken.set)
            await store.write(_put("before"))
            await store.check()  # on a connection that the next check uses
            with servers.primary.frozen():
                writing = asyncio.create_task(store.write(_put("thawed")))
                begun = time.monotonic()
                with pytest.raises(UnavailableProblem):
                    await store.check()
                assert time.monotonic() - begun <= 5
            assert await writing
            await _until_ready(store)
            await woken.wait()  # the store listens
            with servers.primary.frozen():
                woken.clear()
                begun = time.monotonic()
                writing = asyncio.create_task(store.write(_put("promoted")))
                reading = asyncio.create_task(store.read(_names))
                await asyncio.to_thread(servers.standby.run, "pg_ctl", "-w", "promote")
                assert await writing
                assert "before" in await reading
                assert time.monotonic() - begun <= 15
                while not woken.is_set():
                    await store.write(lambda tx: tx.notify("channel"))
                await _until_ready(store)
            servers.standby.crash()
            await _until_ready(store)
            assert {"thawed", "promoted"} <= await store.read(_names)
            sentence = "is a former primary: its timeline is 1, but 2 was used before"
            with servers.standby.stopped(), pytest.raises(UnavailableProblem, match=sentence):
                await store.read(_names)


async def test_a_frozen_process_holds_what_it_has_locked_for_one_wait_only(
    replicated: ReplicatedServer, tmp_path: Path
) -> None:
    # contract P2
    address = postgres_address(replicated.url)
    holds, thawed = threading.Event(), threading.Event()

    def freeze(tx: Transaction) -> bool:
        done = _put("locked")(tx)
        holds.set()
        thawed.wait(DEADLINE_SECONDS)
        return done

    async with running_store(address, tmp_path / "1") as frozen, running_store(address, tmp_path / "2") as other:
        writing = asyncio.create_task(frozen.write(freeze))
        await asyncio.to_thread(holds.wait)
        try:
            assert await other.write(_put("locked"))
        finally:
            thawed.set()
        with pytest.raises(UnavailableProblem, match="not known whether the change is kept"):
            await writing
        assert await frozen.write(_put("locked")) is False


async def test_a_primary_without_its_standby_is_left_for_the_standby_that_was_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract P2
    monkeypatch.setattr(PostgresConnection, "silent_seconds", 1.0)
    with replicated_server() as servers:
        address = postgres_address(servers.url)
        migrate(address)
        async with running_store(address, tmp_path) as store, _limited(servers.primary):
            assert await store.write(_put("before"))
            assert await store.read(_names) == {"before"}
            servers.standby.run("pg_ctl", "-w", "promote")
            with pytest.raises(UnavailableProblem, match="The connection to the database was lost in the commit"):
                await store.write(_put("never replicated"))
            assert await store.write(_put("promoted"))
            assert await store.read(_names) == {"before", "promoted"}


async def test_a_migration_and_a_backup_wait_for_a_server_that_works_and_end_when_it_is_frozen(
    replicated: ReplicatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract P2
    asked = threading.Semaphore(0)

    class Probed(PostgresConnection):
        silent_seconds = 0.5

        def responds_to_login(self) -> bool:
            responded = super().responds_to_login()
            asked.release()
            return responded

    monkeypatch.setattr("workspaced.storage.postgres_connection.PostgresConnection", Probed)
    monkeypatch.setattr("ingestd.process.postgres_connection.SILENT_SECONDS", 0.5)
    address = postgres_address(f"{replicated.url}?connect_timeout=2")
    with replicated.primary.connect() as other:
        other.execute("SELECT pg_advisory_lock(%s)", [postgres_schema._LOCK])
        other.execute("BEGIN; LOCK TABLE fixed_setting")
        migrating = asyncio.create_task(asyncio.to_thread(migrate, address))
        dumping = asyncio.create_task(asyncio.to_thread(back_up, address, tmp_path / "blobs", tmp_path / "copy"))
        for _ in range(6):
            assert await asyncio.to_thread(asked.acquire, timeout=DEADLINE_SECONDS)
        assert not migrating.done()
        assert not dumping.done()
        with replicated.primary.frozen():
            async with asyncio.timeout(DEADLINE_SECONDS):
                ended = await asyncio.gather(migrating, dumping, return_exceptions=True)
    assert "the server sent nothing for " in str(ended[0])
    assert "the server does not respond any more" in str(ended[1])
    assert [type(error) for error in ended] == [UnavailableProblem, StorageUnusable]


def test_a_migration_ends_if_the_standby_is_missing_at_its_commit(
    replicated: ReplicatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract P2
    monkeypatch.setattr(PostgresConnection, "silent_seconds", 0.5)
    with (
        replicated.standby.frozen(),
        pytest.raises(UnavailableProblem, match=r"sent nothing for .*continues after the last step"),
    ):
        migrate(postgres_address(replicated.url))


async def test_a_host_that_accepts_connections_and_never_responds_is_passed_over(
    replicated: ReplicatedServer, tmp_path: Path
) -> None:
    # contract P2
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        alone = postgres_address(f"postgresql://postgres@127.0.0.1:{port}/postgres?connect_timeout=2")
        begun = time.monotonic()
        with pytest.raises(UnavailableProblem, match="timeout expired"):
            await asyncio.to_thread(transact, alone, _names)
        assert time.monotonic() - begun <= 5
        several = replicated.url.replace("@", f"@127.0.0.1:{port},") + "?connect_timeout=2"
        async with running_store(postgres_address(several), tmp_path) as store:
            assert "before" not in await store.read(_names)
        async with running_store(alone, tmp_path) as store:
            begun = time.monotonic()
            reading = [asyncio.create_task(store.read(_names)) for _ in range(40)]
            with pytest.raises(UnavailableProblem):
                await store.check()
            assert time.monotonic() - begun <= 5
            # Each of 2 threads would wait for 2 s for each of its 20 queries.
            assert {type(error) for error in await asyncio.gather(*reading, return_exceptions=True)} == {
                UnavailableProblem
            }
            assert time.monotonic() - begun <= 15
