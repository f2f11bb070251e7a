"""Carries conversions out, beside the requests of the same process. Any number of processes may do so (contract C6).

A commit that queues something wakes the worker; what is due later has a timer. Besides, it looks from time to time for
what another process left behind when it died, or had no room for: that nobody signals.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import structlog

from workspaced.core.clock import Clock
from workspaced.core.problems import Problem
from workspaced.resources.cloud_storage import conversion_store, job
from workspaced.resources.cloud_storage.conversion_store import CONVERSIONS, ConversionClaim
from workspaced.resources.cloud_storage.converters.registry import kind_of
from workspaced.resources.cloud_storage.job import Done, Failed
from workspaced.resources.cloud_storage.values import StoredOutput
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.blobs.port import Blobs
from workspaced.storage.port import Store

_BUSY_MS = 1_000
_READ_BYTES = 262_144


class ConversionWorker:
    """`run` it once; `stop` lets nothing new begin, cancellation gives back what is under way."""

    def __init__(self, store: Store, blobs: Blobs, *, pace: ConversionSettings, clock: Clock) -> None:
        self._store = store
        self._blobs = blobs
        self._pace = pace
        self._clock = clock
        self._wake = asyncio.Event()
        self._stopping = False
        self._postponed = False
        self._claiming: dict[str, asyncio.Future[ConversionClaim | None]] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._holders: set[asyncio.Event] = set()
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._leases = count(1)

    async def run(self) -> None:
        """Convert until `stop` or cancellation."""
        self._store.listen(CONVERSIONS, self._heard)
        try:
            async with asyncio.TaskGroup() as converting:
                while not self._stopping:
                    self._wake.clear()
                    now = self._clock.now()  # one for both questions, so that nothing falls due between them
                    while (claimed := await self._next(now)) is not None:
                        self._under_way[claimed.lease] = converting.create_task(self._carry(claimed))
                    await self._clock.wait(self._wake, await self._next_look(now))
        finally:
            await asyncio.shield(self._give_back_unbegun())

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping = True
        self._wake.set()

    def _heard(self) -> None:
        """There may be something to begin, or to stop."""
        for event in (self._wake, *self._holders):
            event.set()

    async def _next(self, now: int) -> ConversionClaim | None:
        """What is due at ``now``, claimed, as far as there is room."""
        self._postponed = False
        if self._stopping or len(self._under_way) >= self._pace.at_once:
            return None
        lease = f"{self._name}/{next(self._leases)}"
        try:
            # Asked first, since only a claim needs the one writer.
            if not await self._store.read(lambda reader: conversion_store.is_due(reader, now=now)):
                return None
            return await self._claim(lease)
        except Problem as problem:
            structlog.get_logger().warning("conversions_postponed", reason=problem.detail)
        except Exception:  # noqa: BLE001  told, and tried again: the requests of this process go on, so must conversions
            structlog.get_logger().exception("conversions_broke")
        self._postponed = True
        return None

    async def _claim(self, lease: str) -> ConversionClaim | None:
        """Who cancels this does not cancel the claim, which is on its way to the database already."""
        claiming = asyncio.ensure_future(
            self._store.write(
                lambda tx: conversion_store.claim(tx, lease=lease, pace=self._pace, now=self._clock.now())
            )
        )
        self._claiming[lease] = claiming
        try:
            claimed = await asyncio.shield(claiming)
        except Exception:
            del self._claiming[lease]
            raise
        if claimed is None:
            del self._claiming[lease]
        return claimed

    async def _next_look(self, now: int) -> int:
        """The instant after ``now`` at which something is due, or might be."""
        if self._postponed:
            return now + _BUSY_MS
        sweep = now + int(self._pace.sweep_seconds * 1_000)
        try:
            due = await self._store.read(lambda reader: conversion_store.next_due(reader, now=now))
        except Problem:
            return now + _BUSY_MS
        return sweep if due is None else min(due, sweep)

    async def _carry(self, claimed: ConversionClaim) -> None:
        """One conversion from its claim to its end; whoever takes it from us ends it."""
        del self._claiming[claimed.lease]
        log = structlog.get_logger().bind(file=claimed.file_id, lease=claimed.lease)
        working = asyncio.create_task(self._convert(claimed))
        holding = asyncio.create_task(self._hold(claimed))
        try:
            await asyncio.wait({working, holding}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                log.info("conversion_ended", state=working.result() or "lease_lost")
            else:
                log.info("conversion_stopped", reason="the lease or the file is gone")
        except Problem as problem:  # the lease ends, and then it is due again
            log.warning("conversion_not_settled", reason=problem.detail)
        except Exception:  # our own mistake with one file must not end the others
            log.exception("conversion_not_settled")
        finally:
            # Also where the service stops meanwhile: it closes the database only after this.
            ending = asyncio.ensure_future(self._end(claimed, working, holding))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await asyncio.wait([ending])
                raise

    async def _end(self, claimed: ConversionClaim, *tasks: asyncio.Task[Any]) -> None:
        """Nothing of it runs any more; what was not settled is given back."""
        given_up = not tasks[0].done()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if given_up:
            await self._give_back(claimed)
        self._under_way.pop(claimed.lease, None)
        self._wake.set()

    async def _convert(self, claimed: ConversionClaim) -> str | None:
        """The state that it ended in; None where it was not ours any more."""
        try:
            return await self._attempt(claimed)
        except Problem as problem:
            return await self._fail(claimed, Failed(error_class="internal", sentence=problem.detail))
        except Exception:  # noqa: BLE001  our own mistake with one file is that file's failure, to be tried again
            structlog.get_logger().exception("conversion_broke", file=claimed.file_id)
            sentence = "Something failed in the service; its log has it."
            return await self._fail(claimed, Failed(error_class="internal", sentence=sentence))

    async def _attempt(self, claimed: ConversionClaim) -> str | None:
        kind = kind_of(claimed.file_name, claimed.content_type)
        if kind is None:
            sentence = f"There is no converter for {claimed.content_type}."
            return await self._fail(claimed, Failed(error_class="unsupported", sentence=sentence))
        ending = Path(claimed.file_name).suffix.lower()
        async with self._blobs.scratch() as folder:
            source = self._blobs.as_file(claimed.sha256)
            outcome = await job.run(kind, source, ending if ending[1:] in kind.endings else "", folder, pace=self._pace)
            if isinstance(outcome, Failed):
                return await self._fail(claimed, outcome)
            return await self._keep(claimed, outcome, folder / "made")

    async def _keep(self, claimed: ConversionClaim, done: Done, folder: Path) -> str | None:
        async with AsyncExitStack() as held:
            incoming = []
            for one in done.made:
                parts = await held.enter_async_context(aclosing(_parts(folder / one.file)))
                incoming.append(await held.enter_async_context(self._blobs.receive(parts)))
            await held.enter_async_context(self._blobs.kept(*incoming))
            outputs = [
                StoredOutput(name=one.name, content_type=one.content_type, sha256=bytes_.sha256, size=bytes_.size)
                for one, bytes_ in zip(done.made, incoming, strict=True)
            ]
            settled = await self._store.write(
                lambda tx: conversion_store.succeed(tx, claimed, outputs, now=self._clock.now())
            )
            return "succeeded" if settled else None

    async def _fail(self, claimed: ConversionClaim, failed: Failed) -> str | None:
        structlog.get_logger().info(
            "conversion_failed", file=claimed.file_id, error_class=failed.error_class, error=failed.sentence
        )
        return await self._store.write(
            lambda tx: conversion_store.fail(
                tx, claimed, failed.error_class, failed.sentence, pace=self._pace, now=self._clock.now()
            )
        )

    async def _hold(self, claimed: ConversionClaim) -> None:
        """Renew the lease until it is not ours any more, or nobody wants the file; a commit that may say so is heard."""
        wake = asyncio.Event()
        self._holders.add(wake)
        try:
            await self._hold_until(claimed, wake)
        finally:
            self._holders.discard(wake)

    async def _hold_until(self, claimed: ConversionClaim, wake: asyncio.Event) -> None:
        beat_ms = int(self._pace.heartbeat_seconds * 1_000)
        due = self._clock.now() + beat_ms
        while True:
            wake.clear()
            await self._clock.wait(wake, due)
            now = self._clock.now()
            with suppress(Problem):  # asked again at the next beat; until then the lease is long enough
                if now >= due:
                    due = now + beat_ms
                    held = await self._store.write(
                        lambda tx: conversion_store.beat(tx, claimed, pace=self._pace, now=self._clock.now())
                    )
                else:
                    held = await self._store.read(lambda reader: conversion_store.is_held(reader, claimed))
                if not held:
                    return

    async def _give_back_unbegun(self) -> None:
        """Where the service stops between a claim's way to the database and the conversion's first step, nobody else does."""
        for claiming in self._claiming.values():
            with suppress(Problem):  # then it was not claimed
                if claimed := await claiming:
                    await self._give_back(claimed)

    async def _give_back(self, claimed: ConversionClaim) -> None:
        try:
            await self._store.write(lambda tx: conversion_store.release(tx, claimed, now=self._clock.now()))
        except Problem as problem:
            structlog.get_logger().warning("leases_not_released", count=1, reason=problem.detail)


async def _parts(path: Path) -> AsyncGenerator[bytes, None]:
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while part := await asyncio.to_thread(file.read, _READ_BYTES):
            yield part
    finally:
        file.close()
