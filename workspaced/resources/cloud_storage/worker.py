"""The worker that converts files. Each process of the service runs one worker (contract C6).

A commit that queues a conversion wakes the worker. A timer wakes the worker for conversions that are due later. The worker also
looks periodically for conversions of killed processes, and for conversions that no process had capacity for.
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

from workspaced.core.clock import Clock, SetBack
from workspaced.core.problems import Problem
from workspaced.resources.cloud_storage import conversion_store, job
from workspaced.resources.cloud_storage.child import Result
from workspaced.resources.cloud_storage.conversion_store import CONVERSIONS, ConversionClaim
from workspaced.resources.cloud_storage.converters.registry import converter_of
from workspaced.resources.cloud_storage.converters.results import ErrorClass
from workspaced.resources.cloud_storage.values import StoredOutput
from workspaced.settings.workers import ConversionSettings
from workspaced.storage.blobs.blobs import Blobs
from workspaced.storage.blobs.file_threads import open_file
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store

_BUSY_MS = 1_000
_READ_BYTES = 262_144


class ConversionWorker:
    """Converts files while `run` runs. After `stop`, conversions in progress end. A cancellation of `run` releases them."""

    def __init__(self, store: Store, blobs: Blobs, *, settings: ConversionSettings, clock: Clock) -> None:
        self._store = store
        self._blobs = blobs
        self._settings = settings
        self._clock = clock
        self._set_back = SetBack(clock)
        self._wake = asyncio.Event()
        self._stopping = False
        self._postponed = False
        self._claiming: dict[str, asyncio.Future[ConversionClaim | None]] = {}
        self._in_progress: dict[str, asyncio.Task[None]] = {}
        self._holders: set[asyncio.Event] = set()
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._leases = count(1)

    async def run(self) -> None:
        """Convert until `stop` or cancellation."""
        self._store.listen(CONVERSIONS, self._wake_all)
        try:
            async with asyncio.TaskGroup() as converting:
                while not self._stopping:
                    self._wake.clear()
                    # Both queries use the same instant, so that no conversion becomes due between them.
                    now = self._clock.now()
                    while (claimed := await self._claim_due(now)) is not None:
                        self._in_progress[claimed.lease] = converting.create_task(self._run_conversion(claimed))
                    await self._clock.wait(self._wake, await self._next_wakeup(now))
        finally:
            await asyncio.shield(self._release_unstarted())

    def stop(self) -> None:
        """Start no more conversions."""
        self._stopping = True
        self._wake.set()

    def _wake_all(self) -> None:
        """Wake the worker and the tasks that renew leases, because a conversion may be due, or may have to stop."""
        for event in (self._wake, *self._holders):
            event.set()

    async def _claim_due(self, now: int) -> ConversionClaim | None:
        """Claim a conversion that is due at ``now``, if fewer than the maximum are in progress."""
        self._postponed = False
        if self._stopping or len(self._in_progress) >= self._settings.at_once:
            return None
        lease = f"{self._name}/{next(self._leases)}"
        try:
            if self._set_back.noticed():
                await self._store.write(lambda tx: conversion_store.limit_waits(tx, self._settings, now=now))
                self._set_back.accept()
            # Checked by a read first, because a claim needs the only writer of the database.
            if not await self._store.read(lambda reader: conversion_store.is_due(reader, now=now)):
                return None
            return await self._claim(lease)
        except Problem as problem:
            structlog.get_logger().warning("conversions_postponed", reason=problem.detail)
        except Exception:  # noqa: BLE001  logged and tried again: this process still serves requests, so it must convert
            structlog.get_logger().exception("conversions_broke")
        self._postponed = True
        return None

    async def _claim(self, lease: str) -> ConversionClaim | None:
        """Claim a conversion; None if none is due. A cancellation of this call does not cancel the transaction."""
        claiming = asyncio.ensure_future(
            self._store.write(
                lambda tx: conversion_store.claim(tx, lease=lease, settings=self._settings, now=self._clock.now())
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

    async def _next_wakeup(self, now: int) -> int:
        """Return the instant after ``now`` at which to look for conversions again."""
        if self._postponed:
            return now + _BUSY_MS
        sweep = now + int(self._settings.sweep_seconds * 1_000)
        try:
            due = await self._store.read(lambda reader: conversion_store.next_due(reader, now=now))
        except Problem:
            return now + _BUSY_MS
        return sweep if due is None else min(due, sweep)

    async def _run_conversion(self, claimed: ConversionClaim) -> None:
        """Convert one file. Stop if the lease is lost or the file is deleted."""
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
        except Problem as problem:  # when the lease ends, the conversion is due again
            log.warning("conversion_not_recorded", reason=problem.detail)
        except Exception:  # an error in the conversion of one file must not stop other conversions
            log.exception("conversion_not_recorded")
        finally:
            # `_end` completes even if the service stops now, because the service closes the database only afterwards.
            ending = asyncio.ensure_future(self._end(claimed, working, holding))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await asyncio.wait([ending])
                raise

    async def _end(self, claimed: ConversionClaim, *tasks: asyncio.Task[Any]) -> None:
        """End the tasks of a conversion. Release the claim if no outcome was recorded."""
        is_interrupted = not tasks[0].done()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if is_interrupted:
            await self._release(claimed)
        self._in_progress.pop(claimed.lease, None)
        self._wake.set()

    async def _convert(self, claimed: ConversionClaim) -> str | None:
        """Convert the file, and return the new state of the conversion; None if its lease was lost."""
        try:
            return await self._attempt(claimed)
        except Problem as problem:
            return await self._fail(claimed, "internal", problem.detail)
        except Exception:  # noqa: BLE001  a defect is a failed attempt of this file, which is tried again
            structlog.get_logger().exception("conversion_broke", file=claimed.file_id)
            sentence = "The service failed to convert the file; its log has details."
            return await self._fail(claimed, "internal", sentence)

    async def _attempt(self, claimed: ConversionClaim) -> str | None:
        converter = converter_of(claimed.file_name, claimed.content_type)
        if converter is None:
            sentence = f"There is no converter for {claimed.content_type}."
            return await self._fail(claimed, "unsupported", sentence)
        ending = Path(claimed.file_name).suffix.lower()
        async with self._blobs.scratch() as folder:
            source = await self._blobs.as_file(claimed.sha256, size=claimed.size, folder=folder)
            outcome = await job.run(
                converter, source, ending if ending[1:] in converter.endings else "", folder, settings=self._settings
            )
            if outcome.error_class:
                return await self._fail(claimed, outcome.error_class, outcome.sentence)
            return await self._keep(claimed, outcome, folder / "made")

    async def _keep(self, claimed: ConversionClaim, converted: Result, folder: Path) -> str | None:
        async with AsyncExitStack() as stack:
            incoming = []
            for one in converted.outputs:
                parts = await stack.enter_async_context(aclosing(_parts(folder / one.file)))
                incoming.append(await stack.enter_async_context(self._blobs.receive(parts)))
            kept = await self._blobs.keep(*incoming)
            outputs = [
                StoredOutput(name=one.name, content_type=one.content_type, sha256=bytes_.sha256, size=bytes_.size)
                for one, bytes_ in zip(converted.outputs, incoming, strict=True)
            ]

            def record(tx: Transaction) -> bool:
                self._blobs.use(tx, kept)
                return conversion_store.succeed(tx, claimed, outputs, now=self._clock.now())

            recorded = await self._store.write(record)
            return "succeeded" if recorded else None

    async def _fail(self, claimed: ConversionClaim, error_class: ErrorClass, sentence: str) -> str | None:
        structlog.get_logger().info("conversion_failed", file=claimed.file_id, error_class=error_class, error=sentence)
        return await self._store.write(
            lambda tx: conversion_store.fail(
                tx, claimed, error_class, sentence, settings=self._settings, now=self._clock.now()
            )
        )

    async def _hold(self, claimed: ConversionClaim) -> None:
        """Renew the lease until it is lost or the file is deleted; a deletion wakes this task."""
        wake = asyncio.Event()
        self._holders.add(wake)
        try:
            await self._hold_until(claimed, wake)
        finally:
            self._holders.discard(wake)

    async def _hold_until(self, claimed: ConversionClaim, wake: asyncio.Event) -> None:
        interval_ms = int(self._settings.heartbeat_seconds * 1_000)
        due = self._clock.now() + interval_ms
        while True:
            wake.clear()
            await self._clock.wait(wake, due)
            now = self._clock.now()
            # A failed renewal is repeated at the next heartbeat; the lease is longer than the interval of heartbeats.
            with suppress(Problem):
                if now >= due:
                    due = now + interval_ms
                    held = await self._store.write(
                        lambda tx: conversion_store.renew_lease(
                            tx, claimed, settings=self._settings, now=self._clock.now()
                        )
                    )
                else:
                    held = await self._store.read(lambda reader: conversion_store.is_held(reader, claimed))
                if not held:
                    return

    async def _release_unstarted(self) -> None:
        """Release claims that were committed although the service stopped before their conversions started."""
        for claiming in self._claiming.values():
            with suppress(Problem):  # the claim failed
                if claimed := await claiming:
                    await self._release(claimed)

    async def _release(self, claimed: ConversionClaim) -> None:
        try:
            await self._store.write(lambda tx: conversion_store.release(tx, claimed, now=self._clock.now()))
        except Problem as problem:
            structlog.get_logger().warning("leases_not_released", count=1, reason=problem.detail)


async def _parts(path: Path) -> AsyncGenerator[bytes, None]:
    file = await open_file(path, "rb")
    try:
        while part := await asyncio.to_thread(file.read, _READ_BYTES):
            yield part
    finally:
        file.close()
