"""The promises of the storage layer, on either database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.database_client import DatabaseClient
from tests.support.running_store import running_store
from workspaced.core.problems import ConflictProblem, UnavailableProblem
from workspaced.storage.address import Address
from workspaced.storage.batchable import BatchableWork
from workspaced.storage.factory import transact
from workspaced.storage.maintenance_jobs import JobLeases, MaintenanceJobs
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.postgres import PostgresTransaction
from workspaced.storage.store import Store

pytestmark = pytest.mark.both_databases

_PUT = "INSERT INTO fixed_setting (name, value) VALUES (:name, :value)"
_ALL = "SELECT name FROM fixed_setting ORDER BY name"
DEADLINE_SECONDS = 30


@pytest.fixture
async def store(address: Address, tmp_path: Path) -> AsyncIterator[Store]:
    async with running_store(address, tmp_path) as started:
        yield started


@pytest.fixture
async def other(address: Address, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of another process."""
    async with running_store(address, tmp_path) as started:
        yield started


def _put(*names: str, fail: Exception | None = None) -> Callable[[Transaction], str]:
    def work(tx: Transaction) -> str:
        for name in names:
            tx.run(_PUT, {"name": name, "value": "v"})
        if fail:
            raise fail
        return names[0]

    return work


def _names(reader: ReadTransaction) -> list[str]:
    return [row[0] for row in reader.all(_ALL)]


class _Gate:
    """Work that blocks the writer until its release, so that later work shares the next transaction."""

    def __init__(self) -> None:
        self._entered, self._open = threading.Event(), threading.Event()

    def work(self, _tx: Transaction) -> None:
        self._entered.set()
        assert self._open.wait(DEADLINE_SECONDS)

    async def together(self, store: Store, *works: Callable[[Transaction], Any]) -> list[Any]:
        first = asyncio.create_task(store.write(self.work))
        assert await asyncio.to_thread(self._entered.wait, DEADLINE_SECONDS)
        rest = [asyncio.create_task(store.write(work)) for work in works]
        await asyncio.sleep(0)  # each task runs until it waits, so all are in the queue
        self._open.set()
        return (await asyncio.gather(first, *rest, return_exceptions=True))[1:]


async def test_an_acknowledged_write_is_visible_to_every_process(store: Store, other: Store) -> None:
    assert await store.write(_put("a")) == "a"
    assert await other.read(_names) == ["a"]


async def test_short_reads_do_not_wait_for_long_ones(store: Store) -> None:
    responded = threading.Event()

    def long(reader: ReadTransaction) -> list[str]:
        assert responded.wait(DEADLINE_SECONDS)
        return _names(reader)

    async def endless() -> None:
        async for _ in store.stream(lambda reader: iter([long(reader)])):
            pass

    others: list[asyncio.Task[Any]] = [asyncio.create_task(store.read(long)) for _ in range(20)]
    others += [asyncio.create_task(endless()) for _ in range(10)]
    await asyncio.sleep(0)  # each task runs until it waits, so all are ahead
    try:
        async with asyncio.timeout(DEADLINE_SECONDS / 2):
            assert await store.read_brief(_names) == []
    finally:
        responded.set()
        await asyncio.gather(*others)


async def test_failing_work_changes_nothing_and_raises_to_its_own_caller(store: Store) -> None:
    with pytest.raises(ConflictProblem):
        await store.write(_put("a", fail=ConflictProblem("taken", "It is taken.")))
    assert await store.read(_names) == []


async def test_in_a_shared_transaction_only_failing_work_is_rolled_back(store: Store) -> None:
    outcomes = await _Gate().together(
        store, _put("a"), _put("b", fail=ConflictProblem("taken", "It is taken.")), _put("c"), _put("a"), _put("d")
    )
    assert [type(one) for one in outcomes[:3]] == [str, ConflictProblem, str]
    assert isinstance(outcomes[3], Exception)
    assert outcomes[4] == "d"
    assert await store.read(_names) == ["a", "c", "d"]


class _Pair(BatchableWork[str]):
    """Writes a name, and beside it whether it was written in a batch."""

    def __init__(self, name: str, kind: str, *, fail: str = "") -> None:
        """``fail``: where a batch raises, ``before`` or ``after`` it wrote the names; or ``leaves`` this one."""
        self.name = name
        self._kind = kind
        self._fail = fail

    @property
    def kind(self) -> str:
        return self._kind

    def __call__(self, tx: Transaction, /) -> str:
        tx.run(_PUT, {"name": self.name, "value": "alone"})
        return "alone"

    def together(self, tx: Transaction, pieces: Sequence[_Pair], /) -> Sequence[str | None]:
        failing = {piece._fail for piece in pieces}
        if "before" in failing:
            raise ConflictProblem("no", "Not together.")
        mine = [piece for piece in pieces if piece._fail != "leaves"]
        for piece in mine:
            tx.run(_PUT, {"name": piece.name, "value": "together"})
        if "after" in failing:
            raise ConflictProblem("no", "Not together.")
        return ["together" if piece in mine else None for piece in pieces]


async def _done(store: Store, *works: Callable[[Transaction], Any]) -> tuple[list[Any], dict[str, str]]:
    outcomes = await _Gate().together(store, *works)
    rows = await store.read(lambda reader: reader.all("SELECT name, value FROM fixed_setting"))
    return outcomes, dict(rows)


async def test_work_of_a_kind_is_executed_in_a_batch_and_other_work_alone(store: Store) -> None:
    outcomes, kept = await _done(
        store, _Pair("a", "x"), _Pair("e", "y"), _put("c"), _Pair("d", "z"), _Pair("b", "x"), _Pair("f", "y")
    )
    assert outcomes == ["together", "together", "c", "alone", "together", "together"]
    assert kept == {"a": "together", "b": "together", "c": "v", "d": "alone", "e": "together", "f": "together"}


async def test_work_that_fails_in_a_statement_without_a_result_is_undone_alone(store: Store) -> None:
    def fail(tx: Transaction) -> str:
        tx.run(_PUT, {"name": "b", "value": "v"})
        tx.later("INSERT INTO fixed_setting (name, value) VALUES ('none', NULL)")
        return "b"

    first, failed, last = await _Gate().together(store, _put("a"), fail, _put("c"))
    assert (first, last) == ("a", "c")
    assert isinstance(failed, Exception)
    assert await store.read(_names) == ["a", "c"]


async def test_a_part_that_fails_because_of_a_statement_before_it_is_not_undone_alone(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.run(_PUT, {"name": "before", "value": "v"})
        with suppress(Exception):
            tx.later("INSERT INTO fixed_setting (name, value) VALUES ('none', NULL)")
            with tx.nested():
                tx.run(_PUT, {"name": "inside", "value": "v"})
        if not isinstance(tx, PostgresTransaction):  # SQLite undoes only the statement
            raise ConflictProblem("no", "It failed.")

    with pytest.raises(Exception, match=r"failed"):
        await store.write(work)
    assert await store.read(_names) == []


@pytest.mark.parametrize("count", [2, 300])
async def test_loaded_rows_keep_every_kind_of_value(store: Store, count: int) -> None:
    statement = "INSERT INTO idempotent_response (slot, fingerprint, status, headers, body, created_at) VALUES"
    rows = [
        (number.to_bytes(2, "big") + b"\0\\", b"", number, f'"\\\n\t{number}', b"\\x00", 2**60 + number)
        for number in range(count)
    ]
    await store.write(lambda tx: tx.load(statement, rows))
    found = await store.read(
        lambda reader: reader.all(
            "SELECT slot, fingerprint, status, headers, body, created_at FROM idempotent_response ORDER BY slot"
        )
    )
    assert found == rows


async def test_work_that_a_batch_omits_is_executed_alone_and_fails_alone(store: Store) -> None:
    outcomes, kept = await _done(
        store, _Pair("a", "x"), _Pair("b", "x", fail="leaves"), _Pair("a", "x", fail="leaves"), _Pair("c", "x")
    )
    assert isinstance(outcomes.pop(2), Exception)  # the name exists
    assert outcomes == ["together", "alone", "together"]
    assert kept == {"a": "together", "b": "alone", "c": "together"}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_after_a_failed_batch_each_work_is_executed_alone(store: Store, when: str) -> None:
    outcomes, kept = await _done(store, _put("n"), _Pair("a", "x"), _Pair("b", "x", fail=when), _Pair("c", "x"))
    assert outcomes == ["n", "alone", "alone", "alone"]
    assert kept == {"n": "v", "a": "alone", "b": "alone", "c": "alone"}


async def test_a_part_of_work_can_be_rolled_back(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.run(_PUT, {"name": "before", "value": "v"})
        with suppress(ConflictProblem), tx.nested():
            tx.run(_PUT, {"name": "inside", "value": "v"})
            tx.defer("INSERT INTO fixed_setting (name, value) VALUES", ("put off inside", "v"))
            with tx.nested():
                tx.run(_PUT, {"name": "deeper", "value": "v"})
            raise ConflictProblem("no", "No.")
        tx.run(_PUT, {"name": "after", "value": "v"})

    await store.write(work)
    assert await store.read(_names) == ["after", "before"]


@pytest.mark.parametrize("count", [1, 3, 300])
async def test_deferred_rows_are_written_at_the_end_in_one_statement(store: Store, count: int) -> None:
    statement = "INSERT INTO fixed_setting (name, value) VALUES"

    def work(tx: Transaction) -> int:
        tx.load(
            statement, [(f"load {number:03}", 'tab\t, quote", \\N and \\. and line\nend') for number in range(count)]
        )
        for number in range(count):
            tx.defer(statement, (f"put off {number:03}", "v"))
        return len(tx.all(_ALL))

    assert await store.write(work) == count
    assert len(await store.read(_names)) == 2 * count
    values = await store.read(lambda reader: reader.all("SELECT DISTINCT value FROM fixed_setting ORDER BY value"))
    assert sorted(values) == [('tab\t, quote", \\N and \\. and line\nend',), ("v",)]


async def test_a_long_read_sees_one_state(store: Store, other: Store) -> None:
    await store.write(_put("a"))

    def twice(reader: ReadTransaction) -> Iterator[list[str]]:
        yield _names(reader)
        yield _names(reader)

    stream = store.stream(twice)
    assert await anext(stream) == ["a"]
    await other.write(_put("b"))
    assert await anext(stream) == ["a"]
    await stream.aclose()
    assert await store.read(_names) == ["a", "b"]


async def test_a_long_result_is_returned_in_chunks_and_can_be_closed_early(store: Store) -> None:
    await store.write(_put(*(f"n{number:02}" for number in range(25))))

    def counted(reader: ReadTransaction) -> Iterator[int]:
        for rows in reader.chunks(_ALL, {}, 10):
            yield len(rows)

    for _ in range(6):  # more often than there are slots for streams
        stream = store.stream(counted)
        assert await anext(stream) == 10
        await stream.aclose()
    assert [count async for count in store.stream(counted)] == [10, 10, 5]


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(UnavailableProblem):
        await store.read(lambda reader: reader.one("DELETE FROM fixed_setting RETURNING 1"))


async def test_a_listener_is_woken_by_a_commit(store: Store) -> None:
    woken = asyncio.Event()
    store.listen("channel", woken.set)
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not woken.is_set():  # the listening connection may not be ready yet
            await store.write(lambda tx: tx.notify("channel"))


async def test_two_processes_that_concurrently_add_the_same_name_both_get_a_result_and_one_row(
    store: Store, other: Store
) -> None:
    def once(tx: Transaction) -> bool:
        if tx.one("SELECT 1 FROM fixed_setting WHERE name = :name", {"name": "one"}):
            return False
        tx.run(_PUT, {"name": "one", "value": "v"})
        return True

    async with asyncio.TaskGroup() as tasks:
        writing = [tasks.create_task(each.write(once)) for _ in range(10) for each in (store, other)]
    assert sum(task.result() for task in writing) == 1


async def test_a_lock_of_another_program_is_reported_as_busy_and_work_continues_afterwards(
    store: Store, address: Address
) -> None:
    await store.write(_put("a"))
    other_client = DatabaseClient(address)
    change = "UPDATE data_sink_entry_numbers SET scramble = scramble"
    with other_client.uncommitted(change):
        with pytest.raises(UnavailableProblem) as caught:
            await store.write(lambda tx: tx.run(change))
        assert caught.value.code == "storage_busy"
        assert await store.read(_names) == ["a"]
    assert await store.write(lambda tx: tx.run(change)) == 1


async def test_a_job_is_run_by_one_process_at_a_time_and_by_another_after_its_death(store: Store, other: Store) -> None:
    # contract P4
    now = [1_000_000]
    ours, theirs = (JobLeases(each, now=lambda: now[0], seconds=60) for each in (store, other))
    async with ours.held("purge") as first, theirs.held("purge") as second, theirs.held("another") as third:
        assert (first, second, third) == (True, False, True)
    async with theirs.held("purge") as free:
        assert free
    async with AsyncExitStack() as left_behind:
        assert await left_behind.enter_async_context(ours.held("purge"))
        now[0] += 60_001
        async with theirs.held("purge") as taken_over:
            assert taken_over


async def test_a_job_of_a_killed_process_runs_when_its_lease_ends_instead_of_a_period_later(
    store: Store, other: Store
) -> None:
    # contract P4
    now = [1_000_000]
    ran = asyncio.Event()

    async def job() -> int:
        ran.set()
        return 0

    async with AsyncExitStack() as left_behind:
        killed = JobLeases(other, now=lambda: now[0], seconds=60)
        assert await left_behind.enter_async_context(killed.held("sweep"))
        jobs = MaintenanceJobs(
            {"sweep": job}, leases=JobLeases(store, now=lambda: now[0], seconds=0.01), every_seconds=3_600
        )
        assert not await jobs.once()
        assert not ran.is_set()
        running = asyncio.create_task(jobs.run())
        now[0] += 60_001
        await asyncio.wait_for(ran.wait(), 30)
        running.cancel()
        await asyncio.wait([running])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.sets(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6), max_size=40)
)
def test_text_is_stored_exactly_and_sorted_by_code_points(address: Address, names: set[str]) -> None:
    # contract P2
    def put(tx: Transaction) -> list[str]:
        tx.run("DELETE FROM fixed_setting")
        tx.load("INSERT INTO fixed_setting (name, value) VALUES", [(name, "v") for name in names])
        return _names(tx)

    assert transact(address, put) == sorted(names)
