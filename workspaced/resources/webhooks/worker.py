"""Carries deliveries out, beside the requests of the same process. Any number of processes may do so (contract H14).

A commit that queues something wakes the worker; what is due later has a timer. Besides, it looks from time to time for
what another process left behind when it died: that nobody signals.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from itertools import count

import structlog

from workspaced.core.clock import Clock
from workspaced.core.problems import Problem
from workspaced.events.fan_out import DELIVERIES
from workspaced.resources.webhooks import delivery_store
from workspaced.resources.webhooks.attempt import Attempts
from workspaced.resources.webhooks.delivery_store import DeliveryClaim, RecordedAttempt
from workspaced.security.egress.backend import Resolver, system_resolver
from workspaced.security.egress.client import Bounds, EgressClient
from workspaced.security.egress.rules import EgressRules
from workspaced.security.secret_box import SecretBox
from workspaced.settings.workers import DeliverySettings
from workspaced.storage.port import Store, Transaction

_BUSY_MS = 1_000


class Worker:
    """`run` it once; `stop` lets what is under way end, and `run` returns."""

    def __init__(
        self,
        store: Store,
        secret_box: SecretBox,
        *,
        rules: EgressRules,
        pace: DeliverySettings,
        clock: Clock,
        jitter: Callable[[], float],
        resolve: Resolver = system_resolver,
        observer: Callable[[str, float], None] = lambda _status, _seconds: None,
    ) -> None:
        """``observer`` is told what became of each attempt, and how many seconds it took."""
        self._store = store
        self._observer = observer
        self._secret_box = secret_box
        self._rules = rules
        self._pace = pace
        self._clock = clock
        self._jitter = jitter
        self._resolve = resolve
        self._wake = asyncio.Event()
        self._stopping = False
        self._postponed = False
        self._under_way: dict[str, DeliveryClaim] = {}
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._leases = count(1)

    async def run(self) -> None:
        """Deliver until `stop` or cancellation; then what is under way is given back."""
        self._store.listen(DELIVERIES, self._wake.set)
        bounds = Bounds(
            connect_seconds=self._pace.connect_seconds,
            total_seconds=self._pace.total_seconds,
            response_bytes=self._pace.answer_bytes,
        )
        try:
            async with (
                EgressClient(self._rules, bounds=bounds, resolve=self._resolve) as client,
                asyncio.TaskGroup() as delivery_tasks,
            ):
                attempts = Attempts(client, pace=self._pace, now=self._clock.now)
                while not self._stopping:
                    self._wake.clear()
                    now = self._clock.now()  # one for both questions, so that nothing falls due between them
                    for claimed in await self._due(now):
                        self._under_way[claimed.lease] = claimed
                        delivery_tasks.create_task(self._carry(attempts, claimed))
                    await self._clock.wait(self._wake, await self._next_look(now))
        finally:
            await asyncio.shield(self._give_back())

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping = True
        self._wake.set()

    async def _due(self, now: int) -> list[DeliveryClaim]:
        """What is due at ``now``, claimed, as far as there is room."""
        self._postponed = False
        free = self._pace.at_once - len(self._under_way)
        if free <= 0:
            return []
        try:
            # Asked first, since only a claim needs the one writer.
            if not await self._store.read(lambda reader: delivery_store.is_due(reader, self._pace, now=now)):
                return []
            return await self._store.write(lambda tx: self._claim(tx, free))
        except Problem as problem:
            structlog.get_logger().warning("deliveries_postponed", reason=problem.detail)
        except Exception:  # noqa: BLE001  told, and tried again: the requests of this process go on, so must deliveries
            structlog.get_logger().exception("delivery_claim_failed")
        self._postponed = True
        return []

    def _claim(self, tx: Transaction, most: int) -> list[DeliveryClaim]:
        return delivery_store.claim(
            tx,
            self._secret_box,
            self._pace,
            now=self._clock.now(),
            most=most,
            new_lease=lambda: f"{self._name}/{next(self._leases)}",
        )

    def _claim_next(self, tx: Transaction) -> tuple[list[DeliveryClaim], Problem | None]:
        """Claim the next delivery, or return what prevents it: that must not undo what was recorded before."""
        if self._stopping:
            return [], None
        try:
            with tx.nested():
                return self._claim(tx, 1), None
        except Problem as problem:
            return [], problem

    async def _next_look(self, now: int) -> int:
        """The instant after ``now`` at which something is due, or might be."""
        if self._postponed:
            return now + _BUSY_MS
        try:
            due = await self._store.read(lambda reader: delivery_store.next_due(reader, now=now))
        except Problem:
            return now + _BUSY_MS
        sweep = now + int(self._pace.sweep_seconds * 1_000)
        return sweep if due is None else min(due, sweep)

    async def _carry(self, attempts: Attempts, claimed: DeliveryClaim) -> None:
        """One delivery after the other, as long as there are any; each is settled and the next claimed in one commit."""
        under_way: DeliveryClaim | None = claimed
        while under_way is not None:
            current = under_way
            try:
                under_way = await self._deliver(attempts, current)
            except Problem as problem:  # the lease ends, and then it is due again
                structlog.get_logger().warning(
                    "delivery_not_settled", delivery=current.deliveries[0].id, reason=problem.detail
                )
                under_way = None
            except Exception:  # noqa: BLE001  our own mistake with one delivery must not end the others
                structlog.get_logger().exception("delivery_broke", delivery=current.deliveries[0].id)
                under_way = None
            self._under_way.pop(current.lease, None)
        self._wake.set()

    async def _deliver(self, attempts: Attempts, claimed: DeliveryClaim) -> DeliveryClaim | None:
        outcome = await attempts.make(claimed)
        jitter = self._jitter()

        def record(tx: Transaction) -> tuple[RecordedAttempt, list[DeliveryClaim], Problem | None]:
            now = self._clock.now()
            recorded = delivery_store.settle(tx, claimed, outcome, pace=self._pace, now=now, jitter=jitter)
            return recorded, *self._claim_next(tx)

        # The work may be rerun, so what it did is logged after the commit.
        recorded, following, problem = await self._store.write(record, weight=len(claimed.deliveries))
        log = structlog.get_logger()
        if problem is not None:
            log.warning("deliveries_postponed", reason=problem.detail)
        if recorded.disabled is not None:
            webhook = claimed.webhook
            log.warning("webhook_disabled", webhook=webhook.id, owner=webhook.owner, reason=recorded.disabled)
        for delivery, status in zip(claimed.deliveries, recorded.statuses, strict=True):
            self._observer(status or "lease_lost", outcome.milliseconds / 1_000)
            log.info(
                "delivery_attempted",
                delivery=delivery.id,
                webhook=claimed.webhook.id,
                webhook_event=delivery.event_id,
                attempt=delivery.attempts + 1,
                status=status or "lease_lost",
                status_code=outcome.status_code,
                error=outcome.error,
                milliseconds=outcome.milliseconds,
            )
        for one in following:
            self._under_way[one.lease] = one
        return following[0] if following else None

    async def _give_back(self) -> None:
        """What is still ours was cut off."""
        left = list(self._under_way.values())
        if not left:
            return
        now = self._clock.now()

        def release(tx: Transaction) -> None:
            for claimed in left:
                delivery_store.release(tx, claimed, now=now)

        try:
            await self._store.write(release)
        except Problem as problem:
            structlog.get_logger().warning("leases_not_released", count=len(left), reason=problem.detail)
