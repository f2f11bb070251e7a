"""Deliveries to webhooks (service contract H13)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from ingestd.client.records.base import Number, Record

DeliveryStatus: TypeAlias = Literal["pending", "succeeded", "failed", "dead"]


class Delivery(Record, frozen=True, kw_only=True):
    """One event on its way to one webhook; ``failed`` will be tried again at ``next_attempt_at``, ``dead`` will not."""

    id: str
    event_id: str
    type: str
    workspace_id: str | None
    sequence: int
    status: DeliveryStatus
    attempt_count: int
    next_attempt_at: datetime | None
    created_at: datetime
    finished_at: datetime | None


class Attempt(Record, frozen=True, kw_only=True):
    """One request to the receiver. ``status_code`` None: no answer came; ``answer``: its first KiB, for the owner only."""

    number: int
    at: datetime
    milliseconds: Number
    status_code: int | None
    error: str | None
    answer: str | None


class DeliveryDetail(Delivery, frozen=True, kw_only=True):
    """A delivery with its attempts; ``event`` is what is sent, for the owner only."""

    attempts: tuple[Attempt, ...]
    event: dict[str, Any] | None = None
