"""The worker that sends deliveries. Each process of the service runs one worker (contract H14).

A commit that queues a delivery wakes the worker. A timer wakes the worker for deliveries that are due later. The worker also
looks periodically for deliveries of killed processes, because no commit announces such deliveries.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Sequence
from itertools import count

import structlog

from workspaced.core.clock import Clock, SetBack
from workspaced.core.problems import Problem
from workspaced.events.fan_out import DELIVERIES
from workspaced.resources.webhooks import delivery_store
from workspaced.resources.webhooks.attempt import Attempts
from workspaced.resources.webhooks.delivery_store import Claimed, DeliveryClaim, DisabledWebhook, RecordedAttempt
from workspaced.security.egress.client import Bounds, EgressClient, Resolver, system_resolver
from workspaced.security.egress.rules import EgressRules
from workspaced.security.secret_box import SecretBox
from workspaced.settings.workers import DeliverySettings
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store

_BUSY_MS = 1_000


class Worker:
    """Sends deliveries while `run` runs. After `stop`, `run` returns when the attempts in progress have ended."""

    def __init__(
        self,
        store: Store,
        secret_box: SecretBox,
        *,
        rules: EgressRules,
        settings: DeliverySettings,
        clock: Clock,
        jitter: Callable[[], float],
        resolve: Resolver = system_resolver,
        observer: Callable[[str, float], None] = lambda _status, _seconds: None,
    ) -> None:
        """``observer`` receives the status of each attempted delivery, and the seconds that the attempt took."""
        self._store = store
        self._observer = observer
        self._secret_box = secret_box
        self._rules = rules
        self._settings = settings
        self._clock = clock
        self._set_back = SetBack(clock)
        self._jitter = jitter
        self._resolve = resolve
        self._wake = asyncio.Event()
        self._stopping = False
        self._postponed = False
        self._last_postponed = ""
        self._in_progress: dict[str, DeliveryClaim] = {}
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._leases = count(1)

    async def run(self) -> None:
        """Deliver until `stop` or a cancellation. Then release the claims of attempts that did not end."""
        self._store.listen(DELIVERIES, self._wake.set)
        bounds = Bounds(
            connect_seconds=self._settings.connect_seconds,
            total_seconds=self._settings.total_seconds,
            response_bytes=self._settings.response_bytes,
        )
        try:
            async with (
                EgressClient(self._rules, bounds=bounds, resolve=self._resolve) as client,
                asyncio.TaskGroup() as delivery_tasks,
            ):
                attempts = Attempts(client, settings=self._settings, now=self._clock.now)
                while not self._stopping:
                    self._wake.clear()
                    # Both queries use the same instant, so that no delivery becomes due between them.
                    now = self._clock.now()
                    for claimed in await self._due(now):
                        self._in_progress[claimed.lease] = claimed
                        delivery_tasks.create_task(self._send_all(attempts, claimed))
                    await self._clock.wait(self._wake, await self._next_wakeup(now))
        finally:
            await asyncio.shield(self._release_claims())

    def stop(self) -> None:
        """Start no more attempts."""
        self._stopping = True
        self._wake.set()

    async def _due(self, now: int) -> Sequence[DeliveryClaim]:
        """Claim deliveries that are due at ``now``, up to the number of requests that may start now."""
        self._postponed = False
        free = self._settings.at_once - len(self._in_progress)
        if free <= 0:
            return []
        try:
            if self._set_back.noticed():
                await self._store.write(lambda tx: delivery_store.limit_waits(tx, self._settings, now=now))
                self._set_back.accept()
            # Checked by a read first, because a claim needs the only writer of the database.
            if not await self._store.read(lambda reader: delivery_store.is_due(reader, self._settings, now=now)):
                return []
            claimed = await self._store.write(lambda tx: self._claim(tx, free))
        except Problem as problem:
            structlog.get_logger().warning("deliveries_postponed", reason=problem.detail)
        except Exception:  # noqa: BLE001  logged and tried again: this process still serves requests, so it must send deliveries
            structlog.get_logger().exception("delivery_claim_failed")
        else:
            self._log_unusable(claimed)
            self._postponed = bool(claimed.postponed) and not claimed.claims
            return claimed.claims
        self._postponed = True
        return []

    def _claim(self, tx: Transaction, most: int) -> Claimed:
        return delivery_store.claim(
            tx,
            self._secret_box,
            self._settings,
            now=self._clock.now(),
            most=most,
            new_lease=lambda: f"{self._name}/{next(self._leases)}",
        )

    def _claim_next(self, tx: Transaction) -> tuple[Claimed, Problem | None]:
        """Claim the deliveries of the next request. Return the claim, and the problem if the claim failed.

        An exception would undo the outcomes that the same transaction has recorded.
        """
        if self._stopping:
            return Claimed([]), None
        try:
            with tx.nested():
                return self._claim(tx, 1), None
        except Problem as problem:
            return Claimed([]), problem

    async def _next_wakeup(self, now: int) -> int:
        """Return the instant after ``now`` at which to look for deliveries again."""
        if self._postponed:
            return now + _BUSY_MS
        try:
            due = await self._store.read(lambda reader: delivery_store.next_due(reader, now=now))
        except Problem:
            return now + _BUSY_MS
        sweep = now + int(self._settings.sweep_seconds * 1_000)
        return sweep if due is None else min(due, sweep)

    async def _send_all(self, attempts: Attempts, claimed: DeliveryClaim) -> None:
        """Send ``claimed``, then further claims while a delivery is due. Each commit records an outcome and makes a claim."""
        following_claim: DeliveryClaim | None = claimed
        while following_claim is not None:
            current = following_claim
            try:
                following_claim = await self._deliver(attempts, current)
            except Problem as problem:  # when the lease ends, the delivery is due again
                structlog.get_logger().warning(
                    "delivery_not_recorded", delivery=current.deliveries[0].id, reason=problem.detail
                )
                following_claim = None
            except Exception:  # noqa: BLE001  a defect in one delivery must not stop other deliveries
                structlog.get_logger().exception("delivery_broke", delivery=current.deliveries[0].id)
                following_claim = None
            self._in_progress.pop(current.lease, None)
        self._wake.set()

    async def _deliver(self, attempts: Attempts, claimed: DeliveryClaim) -> DeliveryClaim | None:
        outcome = await attempts.make(claimed)
        jitter = self._jitter()

        def record(tx: Transaction) -> tuple[RecordedAttempt, Claimed, Problem | None]:
            now = self._clock.now()
            recorded = delivery_store.record_outcome(
                tx, claimed, outcome, settings=self._settings, now=now, jitter=jitter
            )
            return recorded, *self._claim_next(tx)

        # The transaction may run again, so its results are logged after the commit.
        recorded, claimed_next, problem = await self._store.write(record, weight=len(claimed.deliveries))
        log = structlog.get_logger()
        if problem is not None:
            log.warning("deliveries_postponed", reason=problem.detail)
        if recorded.disabled is not None:
            webhook = claimed.webhook
            _log_disabled(DisabledWebhook(webhook.id, webhook.owner, recorded.disabled))
        self._log_unusable(claimed_next)
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
        for one in claimed_next.claims:
            self._in_progress[one.lease] = one
        return claimed_next.claims[0] if claimed_next.claims else None

    def _log_unusable(self, claimed: Claimed) -> None:
        for one in claimed.disabled:
            _log_disabled(one)
        if claimed.postponed and claimed.postponed != self._last_postponed:
            structlog.get_logger().warning("deliveries_postponed", reason=claimed.postponed)
            self._last_postponed = claimed.postponed

    async def _release_claims(self) -> None:
        """Release the claims of cancelled attempts."""
        left = list(self._in_progress.values())
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


def _log_disabled(disabled: DisabledWebhook) -> None:
    structlog.get_logger().warning(
        "webhook_disabled", webhook=disabled.id, owner=disabled.owner, reason=disabled.reason
    )
