from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from workspaced.app import running
from workspaced.core.problems import ConflictProblem, UnavailableProblem
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage import migrations, schema
from workspaced.storage.group_commit import GroupCommit
from workspaced.storage.port import ReadTransaction, StorageUnusable, Transaction
from workspaced.storage.sqlite import SqliteTransaction, connect
from workspaced.storage.sqlite_group import SqliteGroup
from workspaced.storage.sqlite_store import SqliteStore, open_database

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


def _move(path: Path) -> None:
    path.rename(path.with_name("away"))


def _replace(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.touch()


def _loop(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.symlink_to(path.name)


@pytest.mark.parametrize("change", [_move, _replace, _loop])
@pytest.mark.parametrize("name", ["s.db", "s.db-wal"])
async def test_a_moved_file_is_neither_written_nor_read_until_it_is_back(
    store: SqliteStore, tmp_path: Path, name: str, change: Callable[[Path], None]
) -> None:
    def one(tx: ReadTransaction) -> object:
        return tx.one("SELECT 1")

    change(tmp_path / name)
    for attempt in (store.write(one), store.read(one), anext(store.stream(_count_up)), store.check()):
        with pytest.raises(UnavailableProblem, match="was moved, replaced or removed") as refused:
            await attempt
        assert refused.value.code == "storage_moved"
    (tmp_path / "away").replace(tmp_path / name)
    await store.check()
    assert [await store.write(one), await store.read(one)] == [(1,), (1,)]


def test_the_file_is_in_wal_mode_and_every_commit_is_flushed(tmp_path: Path) -> None:
    # contract P1
    with open_database(tmp_path / "s.db") as connection:
        pragmas = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


@pytest.mark.parametrize("exists", [False, True])
async def test_the_stored_data_are_accessible_to_their_owner_only(tmp_path: Path, *, exists: bool) -> None:
    data = tmp_path / "parent" / "data"
    others = os.umask(0o022)
    try:
        if exists:
            data.mkdir(parents=True)
        async with running(WorkspacedSettings(data=data)):
            modes = {entry.name: entry.stat().st_mode & 0o777 for entry in data.iterdir()}
    finally:
        os.umask(others)
    names = {"workspaced.db", *(f"workspaced.db{more}" for more in ("-wal", "-shm", ".lock", ".use"))}
    assert modes == {"blobs": 0o700, **dict.fromkeys(names, 0o600)}
    assert exists or (data.stat().st_mode & 0o077, data.parent.stat().st_mode & 0o077) == (0, 0)


def test_a_new_file_can_be_opened_concurrently(tmp_path: Path) -> None:
    # contract P3
    with ThreadPoolExecutor(8) as pool, ExitStack() as opened:
        connections = pool.map(lambda _: opened.enter_context(open_database(tmp_path / "s.db")), range(16))
        assert {_reached(connection) for connection in connections} == {migrations.head()}


def test_a_failed_migration_leaves_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE idempotent_response (in_the_way)")
    connection.commit()
    with pytest.raises(StorageUnusable, match="already exists"), open_database(path):
        pass
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert (tables, _reached(connection)) == (["idempotent_response"], 0)
    connection.close()


@pytest.fixture
def behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that lacks a step."""
    path = tmp_path / "s.db"
    with open_database(path):
        pass
    step = migrations.MigrationStep(9_999, 1, "ALTER TABLE workspace ADD COLUMN more INTEGER;")
    steps = (*migrations.steps("sqlite"), step)
    monkeypatch.setattr(migrations, "steps", lambda _dialect: steps)
    return path


def test_a_migration_does_not_wait_for_readers_and_names_a_writer(behind: Path) -> None:
    # contract P3
    other = sqlite3.connect(behind, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnusable, match="Another program writes to it"), open_database(behind, busy_seconds=0):
        pass
    other.execute("COMMIT")
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM workspace").fetchone()
    with open_database(behind, busy_seconds=0) as connection:
        assert _reached(connection) == 9_999
    other.close()


def test_a_file_is_not_migrated_while_an_older_program_uses_it(behind: Path) -> None:
    # contract P3
    newer = migrations.steps
    with pytest.MonkeyPatch.context() as program, ExitStack() as older:
        program.setattr(migrations, "steps", lambda dialect: newer(dialect)[:-1])
        connection = older.enter_context(open_database(behind))
        program.undo()
        with pytest.raises(StorageUnusable, match="another workspaced uses it"), open_database(behind, busy_seconds=0):
            pass
        assert _reached(connection) == newer("sqlite")[-2].number
    with open_database(behind, busy_seconds=0) as connection:
        assert _reached(connection) == 9_999


def test_a_step_decides_which_older_programs_can_use_the_file_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract P3
    first = migrations.steps("sqlite")[0]
    added = migrations.MigrationStep(2, 1, "ALTER TABLE workspace ADD COLUMN more INTEGER;")
    removed = migrations.MigrationStep(3, 2, "ALTER TABLE workspace DROP COLUMN more;")

    def start(*steps: migrations.MigrationStep) -> int:
        monkeypatch.setattr(migrations, "steps", lambda _dialect: steps)
        with open_database(tmp_path / "s.db") as connection:
            return _reached(connection)

    assert [start(first), start(first, added), start(first)] == [1, 2, 2]
    assert migrations.oldest() == 1
    assert [start(first, added, removed), start(first, added)] == [3, 3]
    assert migrations.oldest() == 2
    with pytest.raises(StorageUnusable, match="for programs that know schema 2") as refused:
        start(first)
    assert "This program can use schemas 1 to 1," in str(refused.value)


_REMOVAL = re.compile(r"^\s*(DROP|ALTER TABLE .*\b(DROP|RENAME|TYPE|SET NOT NULL)\b)", re.MULTILINE | re.IGNORECASE)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_step_excludes_programs_if_and_only_if_it_removes_something(dialect: migrations.Dialect) -> None:
    # contract P3
    assert _REMOVAL.search("ALTER TABLE block DROP COLUMN icon")
    assert not _REMOVAL.search("ALTER TABLE block ADD COLUMN icon text")
    for before, step in pairwise(migrations.steps(dialect)):
        is_removal = _REMOVAL.search(step.sql) is not None
        assert is_removal == (step.oldest_program > before.oldest_program), step.number


def _reached(connection: sqlite3.Connection) -> int:
    return schema.reached(SqliteTransaction(connection)).number
