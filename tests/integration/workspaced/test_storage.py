from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workspaced.core.problems import ConflictProblem, UnavailableProblem
from workspaced.storage import migrations
from workspaced.storage.group_commit import GroupCommit
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.sqlite import connect
from workspaced.storage.sqlite_group import SqliteGroup
from workspaced.storage.sqlite_store import SqliteStore, open_database, reached, transact

_INSERT = "INSERT INTO note (text) VALUES (:text)"


class _Writer:
    """A writer of a real file, the statements of its connection, and a gate that blocks its first work."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = connect(path)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("CREATE TABLE note (text TEXT UNIQUE)")
        self.statements: list[str] = []
        self.connection.set_trace_callback(self.statements.append)
        self.commit = GroupCommit(SqliteGroup(self.connection).perform)
        self.entered, self.gate = threading.Event(), threading.Event()

    def hold(self, tx: Transaction) -> None:
        self.entered.set()
        assert self.gate.wait(30)
        tx.run(_INSERT, {"text": "first"})

    def kept(self) -> set[str]:
        reader = sqlite3.connect(self.path)
        try:
            return {row[0] for row in reader.execute("SELECT text FROM note")}
        finally:
            reader.close()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[_Writer]:
    writer = _Writer(tmp_path / "notes.db")
    writer.commit.start()
    yield writer
    writer.gate.set()
    writer.commit.stop()
    writer.connection.close()


def _note(text: str, *, fail: bool = False) -> Callable[[Transaction], str]:
    def work(tx: Transaction) -> str:
        tx.run(_INSERT, {"text": text})
        if fail:
            raise ConflictProblem("taken", "It is taken.")
        return text

    return work


async def _queue_after_a_held_one(
    writer: _Writer, *works: Callable[[Transaction], object]
) -> list[asyncio.Task[object]]:
    first = asyncio.create_task(writer.commit.write(writer.hold))
    assert await asyncio.to_thread(writer.entered.wait, 30)
    rest = [asyncio.create_task(writer.commit.write(work)) for work in works]
    await asyncio.sleep(0)  # each task runs until it waits, so all are in the queue
    return [first, *rest]


async def test_work_that_waits_during_a_commit_shares_the_next_one(writer: _Writer) -> None:
    tasks = await _queue_after_a_held_one(writer, *(_note(f"n{number}") for number in range(20)))
    assert writer.kept() == set()
    writer.gate.set()
    assert await asyncio.gather(*tasks) == [None, *(f"n{number}" for number in range(20))]
    assert writer.statements.count("COMMIT") == 2
    assert len(writer.kept()) == 21


async def test_a_response_is_sent_after_the_commit(writer: _Writer) -> None:
    for number in range(20):
        assert await writer.commit.write(_note(f"n{number}")) in writer.kept()


async def test_work_that_fails_before_a_change_does_not_affect_the_others(writer: _Writer) -> None:
    done: list[str] = []

    def counted(text: str) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            done.append(text)
            tx.run(_INSERT, {"text": text})

        return work

    def refused(tx: Transaction) -> None:
        tx.one("SELECT 1")
        raise ConflictProblem("taken", "It is taken.")

    tasks = await _queue_after_a_held_one(writer, counted("a"), refused, counted("b"))
    writer.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), ConflictProblem, type(None)]
    assert (done, writer.kept()) == (["a", "b"], {"first", "a", "b"})
    assert not [text for text in writer.statements if text.startswith(("SAVEPOINT", "ROLLBACK"))]


async def test_deferred_rows_are_written_with_the_commit_and_those_of_failed_work_are_not(writer: _Writer) -> None:
    def deferring(*texts: str, fail: bool = False) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            for text in texts:
                tx.defer("INSERT INTO note (text) VALUES", (text,))
            assert tx.one("SELECT count(*) FROM note WHERE text = :text", {"text": texts[0]}) == (0,)
            if fail:
                raise ConflictProblem("taken", "It is taken.")

        return work

    many = [f"m{number}" for number in range(300)]
    tasks = await _queue_after_a_held_one(
        writer, deferring("a"), deferring("b", fail=True), deferring(*many), deferring("c")
    )
    writer.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), ConflictProblem, type(None), type(None)]
    assert writer.kept() == {"first", "a", "c", *many}
    await writer.commit.write(deferring("alone"))
    with pytest.raises(ConflictProblem):
        await writer.commit.write(deferring("failed alone", fail=True))
    assert writer.kept() == {"first", "a", "c", *many, "alone"}


async def test_work_continues_after_its_caller_was_cancelled(writer: _Writer) -> None:
    tasks = await _queue_after_a_held_one(writer, _note("left"), _note("stays"))
    tasks[1].cancel()
    writer.gate.set()
    assert await tasks[2] == "stays"
    assert writer.kept() == {"first", "left", "stays"}


async def test_the_size_of_a_transaction_is_bounded(writer: _Writer) -> None:
    first = asyncio.create_task(writer.commit.write(writer.hold))
    assert await asyncio.to_thread(writer.entered.wait, 30)
    heavy = [asyncio.create_task(writer.commit.write(_note(f"h{n}"), weight=9_000)) for n in range(4)]
    await asyncio.sleep(0)
    writer.gate.set()
    await asyncio.gather(first, *heavy)
    assert writer.statements.count("COMMIT") == 3


async def test_a_full_disk_is_reported_and_only_acknowledged_writes_are_kept(writer: _Writer) -> None:
    pages = writer.connection.execute("PRAGMA page_count").fetchone()[0]
    writer.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    tasks = await _queue_after_a_held_one(writer, _note("small"), _note("x" * 100_000), _note("tiny"))
    writer.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[2], UnavailableProblem)
    assert outcomes[2].code == "storage_full"
    assert writer.kept() == {"first"} | {outcome for outcome in outcomes if isinstance(outcome, str)}


async def test_stopping_finishes_submitted_work_and_rejects_further_work(writer: _Writer) -> None:
    tasks = await _queue_after_a_held_one(writer, _note("queued"))
    stopping = asyncio.create_task(asyncio.to_thread(writer.commit.stop))
    writer.gate.set()
    await stopping
    assert (await asyncio.gather(*tasks))[1] == "queued"
    assert writer.kept() == {"first", "queued"}
    with pytest.raises(UnavailableProblem):
        await writer.commit.write(_note("late"))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "s.db", readers=2, streams=2)
    await store.start()
    yield store
    await store.stop()


def _count_up(reader: ReadTransaction) -> Iterator[int]:
    for rows in reader.chunks("SELECT value FROM json_each('[1,2,3,4,5]')", {}, 2):
        yield from (row[0] for row in rows)


async def test_a_stream_can_be_closed_early_and_releases_its_slot(store: SqliteStore) -> None:
    for _ in range(6):
        stream = store.stream(_count_up)
        assert await anext(stream) == 1
        await stream.aclose()
    assert [value async for value in store.stream(_count_up)] == [1, 2, 3, 4, 5]


def test_the_file_is_in_wal_mode_and_every_commit_is_flushed(tmp_path: Path) -> None:
    # contract P1
    connection = open_database(tmp_path / "s.db")
    pragmas = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "user_version")
    }
    connection.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "user_version": migrations.head()}


def test_the_database_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "data" / "s.db"
    open_database(path).close()
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_new_file_can_be_opened_concurrently(tmp_path: Path) -> None:
    # contract P3
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: open_database(tmp_path / "s.db"), range(16)))
    for connection in opened:
        assert reached(connection) == migrations.head()
        connection.close()


def test_a_failed_migration_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE idempotent_answer (in_the_way)")
    connection.commit()
    with pytest.raises(StorageUnusable, match="already exists"):
        open_database(path)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert (tables, reached(connection)) == (["idempotent_answer"], 0)
    connection.close()


def test_a_migration_does_not_wait_for_readers_and_names_a_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract P3
    path = tmp_path / "s.db"
    open_database(path).close()
    steps = (*migrations.steps("sqlite"), (9_999, "ALTER TABLE workspace ADD COLUMN more INTEGER;"))
    monkeypatch.setattr(migrations, "steps", lambda _dialect: steps)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnusable, match="Another program writes to it"):
        open_database(path, busy_seconds=0)
    other.execute("COMMIT")
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM workspace").fetchone()
    connection = open_database(path, busy_seconds=0)
    assert reached(connection) == 9_999
    connection.close()
    other.close()


def test_work_outside_the_server_is_committed_or_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    transact(path, lambda tx: tx.run("UPDATE data_sink_entry_numbers SET last_number = 5"))

    def fails(tx: Transaction) -> None:
        tx.run("UPDATE data_sink_entry_numbers SET last_number = 6")
        raise LookupError

    with pytest.raises(LookupError):
        transact(path, fails)
    assert transact(path, lambda tx: tx.one("SELECT last_number FROM data_sink_entry_numbers")) == (5,)
