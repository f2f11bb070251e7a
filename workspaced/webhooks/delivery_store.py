"""Deliveries in the database: leases, outcomes, the log (contract, H11 to H14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from ingestd.process.statements import load_statements
from workspaced.audit import log as audit
from workspaced.audit.log import SYSTEM, Deed
from workspaced.events.outbox import DELIVERIES
from workspaced.problems import NotFound
from workspaced.sealing import Vault
from workspaced.storage.port import Reader, Store, Transaction
from workspaced.webhooks import store
from workspaced.webhooks.pace import Pace, due_again, is_given_up
from workspaced.webhooks.values import StoredWebhook

_SQL = load_statements("workspaced.webhooks", "deliveries.sql")
_DROPPED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A delivery that is ours until the lease ends. ``body`` is what is sent, byte for byte."""

    number: int
    delivery_id: str
    lease: str
    webhook: StoredWebhook
    secrets: tuple[str, ...] = field(repr=False)
    event_id: str
    body: bytes = field(repr=False)
    tries: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one attempt. ``status_code`` None: no answer. Instants and lengths of time are milliseconds."""

    at: int
    milliseconds: int
    status_code: int | None
    error: str | None
    answer: str = field(default="", repr=False)
    retry_after: int | None = None

    @property
    def succeeded(self) -> bool:
        """Only 2xx is a success."""
        return self.status_code is not None and 200 <= self.status_code < 300

    @property
    def gone(self) -> bool:
        """The receiver wants nothing more."""
        return self.status_code == 410


class StoredDelivery(NamedTuple):
    """A delivery in the log, in the order of every SELECT of it."""

    number: int
    id: str
    event_id: str
    type: str
    workspace_id: str
    sequence: int
    status: str
    attempts: int
    due_at: int
    created_at: int
    finished_at: int | None


class StoredAttempt(NamedTuple):
    """An attempt in the log."""

    ordinal: int
    at: int
    milliseconds: int
    status_code: int | None
    error: str | None
    answer: str


def is_due(reader: Reader, *, now: int) -> bool:
    """Whether `claim` would find anything."""
    values = {"now": now, "most": 1}
    return bool(reader.one(_SQL["due_first"], values) or reader.one(_SQL["due_again"], values))


def next_due(reader: Reader, *, now: int) -> int | None:
    """The next instant after ``now`` at which something will be due."""
    row = reader.one(_SQL["next_due"], {"now": now})
    return None if row is None else row[0]


def claim(
    tx: Transaction, vault: Vault, *, now: int, lease_ms: int, most: int, new_lease: Callable[[], str]
) -> list[Claim]:
    """Take what is due, first tries before retries; ours until the lease ends."""
    numbers = [row[0] for row in tx.all(_SQL["due_first"], {"now": now, "most": most})]
    if len(numbers) < most:
        numbers += [row[0] for row in tx.all(_SQL["due_again"], {"now": now, "most": most - len(numbers)})]
    claims = [_claim(tx, vault, number, now=now, until=now + lease_ms, lease=new_lease()) for number in numbers]
    return [one for one in claims if one is not None]


def _claim(tx: Transaction, vault: Vault, number: int, *, now: int, until: int, lease: str) -> Claim | None:
    row = tx.one(_SQL["claim"], {"number": number, "now": now, "until": until, "lease": lease})
    if row is None:  # another process was faster
        return None
    webhook = store.find_by_number(tx, vault, row[1])
    event = tx.one(_SQL["event_of"], {"event": row[2]})
    if webhook is None or event is None:
        raise LookupError(f"delivery {row[0]} has lost its webhook or its event")
    return Claim(
        number=number,
        delivery_id=row[0],
        lease=lease,
        webhook=webhook,
        secrets=store.signing_secrets(tx, vault, webhook, now=now),
        event_id=event[0],
        body=event[1],
        tries=row[3],
        attempts=row[4],
    )


def settle(tx: Transaction, claimed: Claim, outcome: Outcome, *, pace: Pace, now: int, chance: float) -> str | None:
    """Write what became of it; the new status, or None where the lease was lost and nothing is written."""
    due = None
    if not outcome.succeeded and not outcome.gone:
        due = due_again(pace, claimed.tries + 1, now=now, chance=chance, retry_after=outcome.retry_after)
    status = "succeeded" if outcome.succeeded else "failed" if due is not None else "dead"
    values = {"status": status, "due_at": due or now, "finished_at": None if due is not None else now}
    if not tx.run(_SQL["settle"], {**values, "number": claimed.number, "lease": claimed.lease}):
        return None
    tx.run(
        _SQL["insert_attempt"],
        {
            "delivery": claimed.number,
            "ordinal": claimed.attempts + 1,
            "at": outcome.at,
            "milliseconds": outcome.milliseconds,
            "status_code": outcome.status_code,
            "error": outcome.error,
            "answer": outcome.answer,
        },
    )
    _note_health(tx, claimed.webhook, outcome, now=now)
    return status


def _note_health(tx: Transaction, webhook: StoredWebhook, outcome: Outcome, *, now: int) -> None:
    if outcome.succeeded:
        tx.run(_SQL["note_success"], {"number": webhook.number})
        return
    row = tx.one(_SQL["note_failure"], {"number": webhook.number, "now": now})
    if outcome.gone:
        _disable(tx, webhook, "the receiver answered 410 Gone", now=now)
    elif row and is_given_up(failing_since=row[0], failures=row[1], now=now):
        _disable(tx, webhook, "every attempt failed for five days", now=now)


def _disable(tx: Transaction, webhook: StoredWebhook, reason: str, *, now: int) -> None:
    if tx.run(_SQL["disable"], {"number": webhook.number, "reason": reason, "now": now}):
        audit.note(tx, SYSTEM, Deed(action="webhook.disabled", resource_id=webhook.id), now=now)
        structlog.get_logger().warning("webhook_disabled", webhook=webhook.id, owner=webhook.owner, reason=reason)


def release(tx: Transaction, claimed: Claim, *, now: int) -> None:
    """Give it back as if it had not been tried: due at once, for whoever comes."""
    tx.run(_SQL["release"], {"number": claimed.number, "lease": claimed.lease, "now": now})


def list_deliveries(
    reader: Reader, webhook: StoredWebhook, *, status: str, take: int, skip: int
) -> tuple[int, list[StoredDelivery]]:
    """How many there are with this status (empty: any), and a stretch of them, the newest first."""
    wanted = {"webhook": webhook.number, "status": status}
    (total,) = reader.one(_SQL["count_deliveries"], wanted) or (0,)
    rows = reader.all(_SQL["list_deliveries"], {**wanted, "take": take, "skip": skip})
    return total, [StoredDelivery._make(row) for row in rows]


def get_delivery(reader: Reader, webhook: StoredWebhook, delivery_id: str | None) -> StoredDelivery:
    """One delivery of the webhook.

    Raises:
        NotFound: there is none.
    """
    row = reader.one(_SQL["find_delivery"], {"webhook": webhook.number, "id": delivery_id}) if delivery_id else None
    if row is None:
        raise NotFound("delivery_not_found", "This webhook has no such delivery.")
    return StoredDelivery._make(row)


def attempts_of(reader: Reader, delivery: StoredDelivery) -> list[StoredAttempt]:
    """Its attempts, in their order."""
    return [StoredAttempt._make(row) for row in reader.all(_SQL["attempts_of"], {"delivery": delivery.number})]


def body_of(reader: Reader, delivery: StoredDelivery) -> bytes:
    """What was sent, or is to be."""
    row = reader.one(_SQL["body_of"], {"delivery": delivery.number})
    if row is None:
        raise LookupError(f"delivery {delivery.id} has lost its event")
    return bytes(row[0])


def queue_again(tx: Transaction, delivery: StoredDelivery, *, now: int) -> None:
    """Have it tried as if it were new, under the same webhook-id; one that waits or is under way stays as it is."""
    tx.run(_SQL["queue_again"], {"number": delivery.number, "now": now})
    tx.notify(DELIVERIES)


async def drop_older(service_store: Store, *, before: int) -> int:
    """Forget events of before that instant, with their deliveries, some at a time; how many events."""
    total = 0
    while True:
        dropped = await service_store.write(
            lambda tx: tx.run(_SQL["drop_old_events"], {"before": before, "most": _DROPPED_AT_ONCE}),
            weight=_DROPPED_AT_ONCE,
        )
        total += dropped
        if dropped < _DROPPED_AT_ONCE:
            return total
