"""Deliveries in the database: claims and outcomes (contract H11, H12, H14)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, TypeAlias

from workspaced.events.payload import sink_of_entry
from workspaced.resources.webhooks import store
from workspaced.resources.webhooks.delivery_rules import Waiting, due_again, must_disable, ready, ready_in_order
from workspaced.resources.webhooks.values import StoredWebhook
from workspaced.security import audit_log as audit
from workspaced.security.audit_log import SYSTEM, AuditAction
from workspaced.security.secret_box import SecretBox, SecretsSealed
from workspaced.settings.workers import DeliverySettings
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.webhooks", "deliveries.sql")
_WINDOW = 64
"""The number of waiting deliveries of a webhook that `ready` examines, the oldest first."""


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """One delivery of a claim. ``body``: the event. ``tries`` restarts at 0 when the delivery is queued again."""

    number: int
    id: str
    resource: str
    tries: int
    attempts: int
    event_id: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryClaim:
    """The deliveries of one request, in their order. No other process sends them until the lease ends."""

    lease: str
    webhook: StoredWebhook
    secrets: tuple[str, ...] = field(repr=False)
    deliveries: tuple[ClaimedDelivery, ...]

    @property
    def is_batch(self) -> bool:
        """Whether the request has the form of a batch: the webhook has ``batch_entries``, and all events are of entries."""
        first = self.deliveries[0]
        return self.webhook.definition.batch_entries and sink_of_entry(first.resource) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """The outcome of an attempt. ``at``: milliseconds since 1970. ``status_code`` None: there was no response."""

    at: int
    milliseconds: int
    status_code: int | None
    error: str | None
    response: str = field(default="", repr=False)
    retry_after_seconds: float | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the status is 2xx."""
        return self.status_code is not None and 200 <= self.status_code < 300

    @property
    def gone(self) -> bool:
        """Whether the receiver asks for no more deliveries."""
        return self.status_code == 410


class RecordedAttempt(NamedTuple):
    """The changes in the database after the outcome of an attempt was recorded.

    ``statuses``: the new status of each delivery of the claim; None: the lease was lost, and nothing was written.
    ``disabled``: why the webhook was disabled; None: it is still enabled.
    """

    statuses: Sequence[str | None]
    disabled: str | None


class DisabledWebhook(NamedTuple):
    """A webhook that was disabled, and why."""

    id: str
    owner: str
    reason: str


class Claimed(NamedTuple):
    """The claims of a transaction, and the webhooks that it disabled. ``postponed``: why due deliveries wait; else empty."""

    claims: Sequence[DeliveryClaim]
    disabled: Sequence[DisabledWebhook] = ()
    postponed: str = ""


class _OwnerWithoutKey(Exception):
    """The owner of a webhook has no valid key."""


_Plan: TypeAlias = tuple[int, Sequence[int]]
"""The number of a webhook, and the numbers of its deliveries that may be sent in one request."""


def is_due(reader: ReadTransaction, settings: DeliverySettings, *, now: int) -> bool:
    """Whether a delivery is due, so that `claim` would return it."""
    return next(_plans(reader, settings, now=now), None) is not None


def next_due(reader: ReadTransaction, *, now: int) -> int | None:
    """Return the next instant after ``now`` at which a delivery is due."""
    row = reader.one(_SQL["next_due"], {"now": now})
    return None if row is None else row[0]


def claim(
    tx: Transaction,
    secret_box: SecretBox,
    settings: DeliverySettings,
    *,
    now: int,
    most: int,
    new_lease: Callable[[], str],
) -> Claimed:
    """Claim the deliveries of at most ``most`` requests that are due, first attempts before retries.

    A webhook that can't be used is disabled with the reason, and does not affect other webhooks. If only this process lacks the
    encryption key, the webhook stays enabled, and its deliveries wait for a process with the key.
    """
    claims: list[DeliveryClaim] = []
    disabled: list[DisabledWebhook] = []
    postponed = ""
    unusable: set[int] = set()
    for number, deliveries in _plans(tx, settings, now=now):
        if len(claims) == most:
            break
        if number in unusable:
            continue
        try:
            with tx.nested():
                claimed = _claim(tx, secret_box, settings, number, deliveries, now=now, lease=new_lease())
        except SecretsSealed as sealed:
            unusable.add(number)
            reason = store.SEALED_REASON if sealed.key_differs else ""
            postponed = postponed if reason else sealed.detail
        except _OwnerWithoutKey:
            unusable.add(number)
            reason = "its owner has no valid API key"
        except (LookupError, TypeError, ValueError) as error:
            unusable.add(number)
            reason = f"its stored data or a delivery is damaged ({type(error).__name__}: {error})"
        else:
            if claimed is not None:  # else another process claimed the delivery first
                claims.append(claimed)
            continue
        identity = tx.one(_SQL["identity_of"], {"number": number}) if reason else None
        if identity is not None and _disable(tx, number, identity[0], reason, now=now):
            disabled.append(DisabledWebhook(identity[0], identity[1], reason))
    return Claimed(claims, disabled, postponed)


def limit_waits(tx: Transaction, settings: DeliverySettings, *, now: int) -> None:
    """After the clock was set back, limit the wait of a first attempt to a lease, and of a retry to a lease plus its pause."""
    leased = now + int(settings.lease_seconds * 1_000)
    tx.run(_SQL["limit_first_attempts"], {"latest": leased})
    for tries, pause in enumerate(settings.retry_seconds):
        latest = leased + int(pause * (1 + settings.jitter) * 1_000)
        tx.run(_SQL["limit_retries"], {"tries": tries, "latest": latest})


def _plans(reader: ReadTransaction, settings: DeliverySettings, *, now: int) -> Iterator[_Plan]:
    waiting = reader.all(_SQL["webhooks_waiting"], {"now": now})
    # The webhooks share the requests that may be sent at once, so that no webhook waits until the queues of all other webhooks
    # are empty.
    share = max(1, min(settings.at_once_to_one, settings.at_once // max(1, len(waiting))))
    for webhook, in_order, batch_entries, _, in_progress in waiting:
        if in_order or batch_entries:
            batch = settings.batch_events if batch_entries else 1
            chosen = ready_in_order(_window(reader, "waiting", webhook, most=batch), now=now, batch=batch)
            if chosen and not in_progress:
                yield webhook, chosen
        elif in_progress < share:
            window = _window(reader, "waiting", webhook, most=_WINDOW)
            for number in ready(window, now=now, most=share - in_progress):
                yield webhook, [number]
    for webhook, batch_entries, _ in reader.all(_SQL["webhooks_due_again"], {"now": now, "most": settings.at_once}):
        batch = settings.batch_events if batch_entries else 1
        chosen = ready_in_order(_window(reader, "due_again", webhook, most=batch, now=now), now=now, batch=batch)
        if chosen:
            yield webhook, chosen


def _window(reader: ReadTransaction, statement: str, webhook: int, *, most: int, **values: int) -> list[Waiting]:
    rows = reader.all(_SQL[statement], {"webhook": webhook, "most": most, **values})
    return [Waiting._make(row) for row in rows]


def _claim(
    tx: Transaction,
    secret_box: SecretBox,
    settings: DeliverySettings,
    number: int,
    deliveries: Sequence[int],
    *,
    now: int,
    lease: str,
) -> DeliveryClaim | None:
    claimed: list[ClaimedDelivery] = []
    size = 0
    for delivery in deliveries:
        event = tx.one(_SQL["event_of"], {"delivery": delivery})
        if event is None:
            raise LookupError(f"delivery {delivery} of webhook {number} has lost its event")
        size += len(event[1])
        if claimed and size > settings.batch_bytes:
            break
        values = {"number": delivery, "now": now, "until": now + int(settings.lease_seconds * 1_000), "lease": lease}
        row = tx.one(_SQL["claim"], values)
        if row is None:
            break
        claimed.append(ClaimedDelivery(delivery, *row, *event))
    webhook = store.find_by_number(tx, secret_box, number) if claimed else None
    if webhook is None:
        return None
    if tx.one(_SQL["owner_has_key"], {"owner": webhook.owner, "now": now}) is None:
        raise _OwnerWithoutKey
    return DeliveryClaim(
        lease=lease,
        webhook=webhook,
        secrets=store.signing_secrets(tx, secret_box, webhook, now=now),
        deliveries=tuple(claimed),
    )


def record_outcome(
    tx: Transaction,
    claim: DeliveryClaim,
    outcome: AttemptOutcome,
    *,
    settings: DeliverySettings,
    now: int,
    jitter: float,
) -> RecordedAttempt:
    """Record the outcome of an attempt for each delivery of the claim, and for the webhook."""
    statuses = [
        _record_delivery(tx, claim, one, outcome, settings=settings, now=now, jitter=jitter) for one in claim.deliveries
    ]
    is_recorded = any(status is not None for status in statuses)
    return RecordedAttempt(statuses, _note_health(tx, claim.webhook, outcome, now=now) if is_recorded else None)


def _record_delivery(
    tx: Transaction,
    claim: DeliveryClaim,
    claimed: ClaimedDelivery,
    outcome: AttemptOutcome,
    *,
    settings: DeliverySettings,
    now: int,
    jitter: float,
) -> str | None:
    due = None
    if not outcome.succeeded and not outcome.gone:
        due = due_again(
            settings, claimed.tries + 1, now=now, jitter=jitter, retry_after_seconds=outcome.retry_after_seconds
        )
    status = "succeeded" if outcome.succeeded else "failed" if due is not None else "dead"
    values = {"status": status, "due_at": due or now, "finished_at": None if due is not None else now}
    if not tx.run(_SQL["record_outcome"], {**values, "number": claimed.number, "lease": claim.lease}):
        return None
    attempt = {"delivery": claimed.number, "ordinal": claimed.attempts + 1, **asdict(outcome)}
    tx.later(_SQL["insert_attempt"], attempt)
    return status


def _note_health(tx: Transaction, webhook: StoredWebhook, outcome: AttemptOutcome, *, now: int) -> str | None:
    """Record a success or a failure of the webhook. Return the reason if the failure disables the webhook; else None."""
    if outcome.succeeded:
        tx.later(_SQL["note_success"], {"number": webhook.number})
        return None
    row = tx.one(_SQL["note_failure"], {"number": webhook.number, "now": now})
    if outcome.gone:
        return _disable(tx, webhook.number, webhook.id, "the receiver responded 410 Gone", now=now)
    if row and must_disable(failing_since=row[0], failures=row[1], now=now):
        return _disable(tx, webhook.number, webhook.id, "every attempt failed for five days", now=now)
    return None


def _disable(tx: Transaction, number: int, webhook_id: str, reason: str, *, now: int) -> str | None:
    """Disable the webhook and return the reason; None if the webhook was already disabled."""
    disabled = tx.one(_SQL["disable"], {"number": number, "reason": reason, "now": now})
    if disabled is None:
        return None
    action = AuditAction(action="webhook.disabled", resource_id=webhook_id, resource_label=disabled[0])
    audit.note(tx, SYSTEM, action, now=now)
    return reason


def release(tx: Transaction, claim: DeliveryClaim, *, now: int) -> None:
    """Release a claim without an attempt: its deliveries are due at once, for any process."""
    for claimed in claim.deliveries:
        tx.run(_SQL["release"], {"number": claimed.number, "lease": claim.lease, "now": now})
