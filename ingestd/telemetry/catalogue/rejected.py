"""Events of operations on rejections. ``chosen``: the selection as text; ``by``: the requesting account."""

from __future__ import annotations

from ingestd.telemetry.event import Event, WarningEvent


class RejectionsRetried(Event, frozen=True, kw_only=True):
    """Rejections were retried: ``records`` are mapped at the next reading, ``entries`` are pending."""

    by: str
    chosen: str
    records: int
    entries: int


class RejectionsDropped(WarningEvent, frozen=True, kw_only=True):
    """Rejections were dropped; their values are not delivered until their source changes."""

    by: str
    chosen: str
    rejections: int


class RejectionsForgotten(WarningEvent, frozen=True, kw_only=True):
    """Rejections beyond the configured limits (``rejected``) were deleted."""

    rejections: int
    keep_days: float | None
    keep_rows: int | None
