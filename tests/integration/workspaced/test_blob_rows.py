"""Rows of bytes, uploads and sweeps at the same time: a row that is referred to has its bytes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from tests.integration.workspaced.deliveries.conftest import ManualClock
from workspaced.core.problems import UnavailableProblem
from workspaced.resources.cloud_storage import retention
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.blobs import rows
from workspaced.storage.blobs.blobs import GRACE_MS, Blobs
from workspaced.storage.blobs.file_threads import FileThreads
from workspaced.storage.blobs.folder import BlobFolder
from workspaced.storage.blobs.received_bytes import Incoming, IncomingFolder
from workspaced.storage.factory import create_store, transact
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store

pytestmark = pytest.mark.both_databases
_GRACE_SECONDS = GRACE_MS / 1_000


class Host:
    """The bytes of one host, without the rest of the service."""

    def __init__(self, settings: WorkspacedSettings) -> None:
        self.clock = ManualClock()
        self.threads = FileThreads(2)
        self.incoming = IncomingFolder(settings.blob_folder / "incoming", self.threads)
        self.folder = BlobFolder(settings.blob_folder, self.threads)
        self.store: Store = create_store(settings.database, folder=settings.data, readers=2, streams=1)
        self.blobs = Blobs(self.folder, self.store, self.incoming, now=self.clock.now)
        self._settings = settings

    async def start(self) -> None:
        await self.incoming.start()
        await self.store.start()
        await self.blobs.identity.check()

    async def stop(self) -> None:
        await self.store.stop()
        await self.threads.stop()

    async def upload(self, content: bytes) -> Incoming:
        """Upload bytes, as a request does, and refer to them."""
        async with self.blobs.receive(_parts(content)) as received:
            kept = await self.blobs.keep(received)
            await self.store.write(lambda tx: self.refer(tx, kept))
        return received

    def refer(self, tx: Transaction, kept: Mapping[str, str]) -> None:
        self.blobs.use(tx, kept)
        for sha256 in kept:
            tx.run(
                "INSERT INTO cloud_upload (id, file, file_name, content_type, expires_at, sha256) "
                "VALUES (:id, 1, 'a', 'b', 0, :sha256)",
                {"id": f"{sha256}-{self.clock.now()}", "sha256": sha256},
            )

    async def forget(self) -> None:
        """Remove all references."""
        await self.store.write(lambda tx: tx.run("DELETE FROM cloud_upload"))

    async def upload_expired(self, content: bytes) -> Incoming:
        """Upload bytes that the next sweep deletes: nothing has referred to them for half a day."""
        received = await self.upload(content)
        await self.forget()
        await self.sweep()
        await self.clock.advance(_GRACE_SECONDS)
        return received

    async def sweep(self) -> int:
        return await retention.sweep(self.store, self.blobs, now=self.clock.now())

    async def content(self, received: Incoming) -> bytes:
        return b"".join([part async for part in self.blobs.read(received.sha256, start=0, length=received.size)])

    @property
    def stored(self) -> set[str]:
        """The names of all files with bytes, also of those that no row finds."""
        found = self._settings.blob_folder.glob("??/*")
        return {str(path.relative_to(self._settings.blob_folder)) for path in found}


async def _parts(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


_WORKSPACE = """
INSERT INTO workspace (number, id, label, root_block, public_can_read, exports_enabled, guests_enabled, current_version, statuses,
                       version, created_at, updated_at, created_by, updated_by)
VALUES (1, 'w', 'w', 'r', 0, 0, 0, '', '[]', 1, 0, 0, '', '')
"""
_FILE = """
INSERT INTO cloud_file (number, id, workspace, file_name, content_type, current_version, version, created_at, updated_at,
                        created_by, updated_by)
VALUES (1, 'f', 1, 'a', 'b', 0, 1, 0, 0, '', '')
"""


@pytest.fixture
async def host(settings: WorkspacedSettings) -> AsyncIterator[Host]:
    transact(settings.database, lambda tx: (tx.run(_WORKSPACE), tx.run(_FILE)))
    host = Host(settings)
    await host.start()
    yield host
    await host.stop()


class Killed(Exception):
    pass


async def test_bytes_are_deleted_when_nothing_has_referred_to_them_for_half_a_day(host: Host) -> None:
    received = await host.upload(b"abc")
    for _ in range(2):
        await host.clock.advance(_GRACE_SECONDS)
        assert await host.sweep() == 0
    await host.forget()
    assert await host.sweep() == 0
    await host.clock.advance(_GRACE_SECONDS - 1)
    assert await host.sweep() == 0
    assert await host.content(received) == b"abc"
    await host.clock.advance(1)
    assert await host.sweep() == 1
    assert host.stored == set()
    with pytest.raises(UnavailableProblem, match="missing"):
        await host.content(received)


async def test_a_new_reference_ends_the_time_for_which_bytes_are_unused(host: Host) -> None:
    received = await host.upload_expired(b"abc")
    await host.upload(b"abc")
    assert await host.sweep() == 0
    await host.forget()
    await host.sweep()
    await host.clock.advance(1)
    assert await host.sweep() == 0, "the time begins again"
    assert await host.content(received) == b"abc"
    assert len(host.stored) == 1


async def test_bytes_of_an_upload_without_a_reference_are_deleted_within_a_day(host: Host) -> None:
    async with host.blobs.receive(_parts(b"abc")) as received:
        await host.blobs.keep(received)
    assert len(host.stored) == 1
    await host.clock.advance(_GRACE_SECONDS)
    assert await host.sweep() == 1
    assert host.stored == set()


async def test_an_upload_that_is_recorded_after_its_bytes_were_swept_is_refused(host: Host) -> None:
    async with host.blobs.receive(_parts(b"abc")) as received:
        kept = await host.blobs.keep(received)
        await host.clock.advance(_GRACE_SECONDS)
        assert await host.sweep() == 1
        with pytest.raises(UnavailableProblem, match="send them again"):
            await host.store.write(lambda tx: host.refer(tx, kept))
    assert await host.content(await host.upload(b"abc")) == b"abc"


async def test_an_upload_of_equal_bytes_that_found_them_is_refused_if_they_are_swept_meanwhile(host: Host) -> None:
    await host.upload(b"abc")
    async with host.blobs.receive(_parts(b"abc")) as received:
        kept = await host.blobs.keep(received)
        await host.forget()
        await host.sweep()
        await host.clock.advance(_GRACE_SECONDS)
        assert await host.sweep() == 1
        async with host.blobs.receive(_parts(b"abc")) as again:
            other = await host.blobs.keep(again)
        assert other != kept, "a name is never used again"
        with pytest.raises(UnavailableProblem, match="send them again"):
            await host.store.write(lambda tx: host.refer(tx, kept))


async def test_a_deletion_that_comes_late_does_not_meet_bytes_that_were_uploaded_since(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    await host.upload_expired(b"abc")
    late: list[Sequence[str]] = []

    async def frozen(names: Sequence[str]) -> None:
        late.append(names)
        raise UnavailableProblem("storage_failed", "The host is frozen.")

    with monkeypatch.context() as freezing:
        freezing.setattr(host.folder, "delete", frozen)
        with pytest.raises(UnavailableProblem):
            await host.sweep()
    received = await host.upload(b"abc")
    await host.folder.delete(late[0])
    assert await host.content(received) == b"abc"


async def test_a_sweep_that_was_killed_before_it_deleted_bytes_is_ended_by_the_next(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = await host.upload_expired(b"abc")

    async def killed(_names: Sequence[str]) -> None:
        raise Killed

    with monkeypatch.context() as killing:
        killing.setattr(host.folder, "delete", killed)
        with pytest.raises(Killed):
            await host.sweep()
    assert transact(host._settings.database, lambda tx: rows.find(tx, received.sha256)) is None
    assert len(host.stored) == 1
    assert await host.sweep() == 1
    assert host.stored == set()
    assert await host.sweep() == 0


async def _until_it_waits_for_a_lock(store: Store) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(60):
        while not await store.read(lambda reader: reader.one(waiting)):  # noqa: ASYNC110  a server sends no signal
            await asyncio.sleep(0.01)


async def test_a_sweep_waits_for_a_transaction_that_refers_to_old_bytes(host: Host) -> None:
    """The order that would lose bytes: the sweep reads that nothing refers to them, then the reference is committed."""
    received = await host.upload_expired(b"abc")
    row = transact(host._settings.database, lambda tx: rows.find(tx, received.sha256))
    assert row is not None
    referred, commits = threading.Event(), threading.Event()

    def record(tx: Transaction) -> None:
        host.refer(tx, {received.sha256: row.name})
        referred.set()
        assert commits.wait(30)

    recording = threading.Thread(target=transact, args=(host._settings.database, record))
    recording.start()
    assert referred.wait(30)
    dropped: list[int] = []
    before = host.clock.now() - GRACE_MS
    sweeping = threading.Thread(
        target=lambda: dropped.append(
            transact(host._settings.database, lambda tx: retention._drop_unused(tx, before=before))
        )
    )
    sweeping.start()
    if host._settings.postgres is not None:  # SQLite has one writer, so the sweep has not begun
        await _until_it_waits_for_a_lock(host.store)
    commits.set()
    for thread in (recording, sweeping):
        thread.join(30)
    assert dropped == [0]
    assert await host.sweep() == 0
    assert await host.content(received) == b"abc"


async def test_a_file_of_another_program_stays(host: Host, settings: WorkspacedSettings) -> None:
    await host.upload(b"abc")
    (strange,) = (path.parent / ".nfs0001" for path in settings.blob_folder.glob("??/*"))
    strange.write_bytes(b"x")
    await host.forget()
    await host.sweep()
    await host.clock.advance(_GRACE_SECONDS)
    assert await host.sweep() == 1
    assert strange.exists()
    assert host.stored == {f"{strange.parent.name}/.nfs0001"}


async def test_whole_reads_compare_the_hash_before_the_last_piece(host: Host, settings: WorkspacedSettings) -> None:
    content = bytes(1_000_000)
    received = await host.upload(content)
    (path,) = settings.blob_folder.glob("??/*")
    path.chmod(0o600)
    path.write_bytes(content[:-1] + b"x")
    arrived: list[bytes] = []

    async def download() -> None:
        async for part in host.blobs.read(received.sha256, start=0, length=received.size):
            arrived.append(part)  # noqa: PERF401  the parts before the error are what is tested

    with pytest.raises(UnavailableProblem, match="damaged"):
        await download()
    assert 0 < len(b"".join(arrived)) < received.size
    part = b"".join([part async for part in host.blobs.read(received.sha256, start=5, length=7)])
    assert part == content[5:12]
