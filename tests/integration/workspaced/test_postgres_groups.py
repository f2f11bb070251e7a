"""Groups of writes on PostgreSQL: locks of other processes, round trips and notifications."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from asyncio import Queue
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import httpx
import psycopg
import pytest

from ingestd.process.postgres_address import PostgresAddress
from tests.support.running_store import running_store
from workspaced.app import running
from workspaced.security import key_store as access
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.batchable import BatchableWork, Work
from workspaced.storage.factory import transact
from workspaced.storage.group_commit import GroupCommit
from workspaced.storage.port import Transaction
from workspaced.storage.postgres_connection import connect
from workspaced.storage.postgres_group import PostgresGroup

DEADLINE_SECONDS = 30
_PUT = "INSERT INTO fixed_setting (name, value) VALUES (:name, 'v')"
_TOUCH = "UPDATE fixed_setting SET value = 'v' WHERE name = 'locked'"


@pytest.fixture
def group(database: PostgresAddress) -> Iterator[PostgresGroup]:
    made = PostgresGroup(lambda: connect(database), announce=lambda _channels: None)
    yield made
    made.close()


@dataclass(eq=False)
class _Locking(BatchableWork[str]):
    """Adds a row, and locks the row of all pieces first. ``begun`` is called with the number of pieces that begin together."""

    name: str
    begun: Callable[[int], None]

    @property
    def kind(self) -> Hashable:
        return _Locking

    def __call__(self, tx: Transaction, /) -> str:
        self.begun(1)
        return str(self.together(tx, [self])[0])

    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[str | None]:
        if len(pieces) > 1:
            self.begun(len(pieces))
        tx.run(_TOUCH)
        for piece in pieces:
            tx.run(_PUT, {"name": piece.name})
        return [piece.name for piece in pieces]


def test_pieces_that_wait_for_another_process_share_a_transaction_after_the_group(
    database: PostgresAddress, group: PostgresGroup
) -> None:
    transact(database, lambda tx: tx.run(_PUT, {"name": "locked"}))
    begun: list[int] = []
    with connect(database) as other:
        other.execute("BEGIN")
        other.execute(_TOUCH)

        def begin(count: int) -> None:
            begun.append(count)
            if len(begun) == 3:  # after the attempts in the group, without savepoints and with them
                other.execute("ROLLBACK")

        works: list[Work] = [_Locking(name, begin) for name in ("a", "b", "c")]
        works.insert(0, lambda tx: tx.run(_PUT, {"name": "first"}))
        assert group.perform(works) == [(1, None), ("a", None), ("b", None), ("c", None)]
    assert begun == [3, 3, 3]
    names = "SELECT count(*), count(DISTINCT xmin::text) FROM fixed_setting WHERE name IN ('a', 'b', 'c')"
    assert transact(database, lambda tx: tx.one(names)) == (3, 1)


def test_a_transaction_is_one_round_trip_for_each_statement_with_a_result(
    group: PostgresGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    group.connection()  # the statements of a new session are not those of its transactions
    trips: list[str] = []
    _record_round_trips(monkeypatch, trips)

    def work(tx: Transaction) -> int:
        tx.later(_PUT, {"name": "a"})
        tx.load("INSERT INTO fixed_setting (name, value) VALUES", [("b", "v"), ("c", "v")])
        count = len(tx.all("SELECT name FROM fixed_setting"))
        tx.defer("INSERT INTO fixed_setting (name, value) VALUES", ("d", "v"))
        tx.notify("channel")
        return count

    assert group.perform([work]) == [(3, None)]
    assert trips == ["pipeline", "pipeline"]  # BEGIN, insertions and SELECT; the deferred row and COMMIT
    assert group.perform([lambda _tx: 7]) == [(7, None)]
    assert trips == ["pipeline", "pipeline"]  # a transaction without a statement does not reach the server


async def test_a_group_of_upserts_takes_a_few_round_trips_of_any_size(
    database: PostgresAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[str] = []
    _record_round_trips(monkeypatch, trips)
    upserts: Queue[None] = Queue()
    write = GroupCommit.write

    async def counted_write(self: GroupCommit, work: Work, **options: Any) -> Any:
        if isinstance(work, BatchableWork):
            upserts.put_nowait(None)
        return await write(self, work, **options)

    monkeypatch.setattr(GroupCommit, "write", counted_write)
    settings = WorkspacedSettings(data=tmp_path / "data", postgres=database, limits=Limits(requests_per_minute=0))
    settings = dataclasses.replace(settings, key_cache_seconds=3_600, maintenance_seconds=86_400)
    now = time.time_ns() // 1_000_000
    key = transact(database, lambda tx: access.create_key(tx, name="svc:t", role="owner", now=now, expires_at=None))
    headers = {"x-api-key": key, "ClientId": "tests"}
    async with running(settings) as app:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as http:
            workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
            sink = (await http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"})).headers["Location"]
            found = []
            await http.post(f"{sink}/mass", json={"key": "first", "value": "1"})
            await upserts.get()
            for count in (5, 40):
                busy, free = threading.Event(), threading.Event()
                holding = asyncio.create_task(app._store.write(partial(_hold, busy, free)))
                await asyncio.to_thread(busy.wait, DEADLINE_SECONDS)
                trips.clear()
                requests = [
                    asyncio.create_task(http.post(f"{sink}/mass", json={"key": f"k{number}", "value": str(count)}))
                    for number in range(count)
                ]
                async with asyncio.timeout(DEADLINE_SECONDS):
                    for _ in range(count):
                        await upserts.get()
                await asyncio.sleep(0)  # the work of this iteration of the loop is passed to the writer together
                free.set()
                assert {response.status_code for response in await asyncio.gather(*requests)} == {200}
                await holding
                found.append(len(trips))
    assert max(found) <= 10  # three, and those of what the service writes by itself meanwhile


def _hold(busy: threading.Event, free: threading.Event, _tx: Transaction) -> None:
    busy.set()
    assert free.wait(DEADLINE_SECONDS)


def _record_round_trips(monkeypatch: pytest.MonkeyPatch, trips: list[str]) -> None:
    """Append to ``trips`` for each pipeline of the writer, and for each of its statements outside of one."""
    execute, pipeline = psycopg.Connection.execute, psycopg.Connection.pipeline
    inside: list[bool] = [False]

    def is_writer() -> bool:
        return threading.current_thread().name in {"MainThread", "writer"}

    def recorded_execute(self: Any, query: Any, *more: Any, **options: Any) -> Any:
        if is_writer() and not inside[0] and "set_config" not in str(query):  # the statement of a new session
            trips.append(str(query))
        return execute(self, query, *more, **options)

    @contextmanager
    def recorded_pipeline(self: Any) -> Iterator[Any]:
        if not is_writer():
            with pipeline(self) as block:
                yield block
            return
        trips.append("pipeline")
        inside[0] = True
        try:
            with pipeline(self) as block:
                yield block
        finally:
            inside[0] = False

    monkeypatch.setattr(psycopg.Connection, "execute", recorded_execute)
    monkeypatch.setattr(psycopg.Connection, "pipeline", recorded_pipeline)


async def test_a_commit_wakes_its_own_process_once_and_other_processes_later(
    database: PostgresAddress, tmp_path: Path
) -> None:
    async with running_store(database, tmp_path) as here, running_store(database, tmp_path) as there:
        async with asyncio.timeout(DEADLINE_SECONDS):
            for listener, sender in ((here, there), (there, here)):
                ready = asyncio.Event()
                listener.listen("ready", ready.set)
                while not ready.is_set():  # until the listening connection is open
                    await sender.write(lambda tx: tx.notify("ready"))
            wakes: list[str] = []
            asked, responded = asyncio.Event(), asyncio.Event()
            here.listen("asked", lambda: wakes.append("here"))
            there.listen("asked", asked.set)
            here.listen("responded", responded.set)
            await here.write(lambda tx: tx.notify("asked"))
            await asked.wait()
            await there.write(lambda tx: tx.notify("responded"))  # it is sent after the first one, to all processes
            await responded.wait()
        assert wakes == ["here"]
