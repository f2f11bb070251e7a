"""Events of operations on rejections. ``chosen``: the selection as text; ``by``: the requesting account."""

from __future__ import annotations

from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


class RejectionsRetried(Event, frozen=True, kw_only=True):
    """Rejections were retried: ``records`` are mapped at the next reading, ``entries`` are pending."""

    by: str
    chosen: str
    records: int
    entries: int


class RejectionsDropped(Event, frozen=True, kw_only=True):
    """Rejections were dropped; their values are not delivered until their source changes."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    by: str
    chosen: str
    rejections: int


class RejectionsForgotten(Event, frozen=True, kw_only=True):
    """Rejections beyond the configured limits (``rejected``) were deleted."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    rejections: int
    keep_days: float | None
    keep_rows: int | None
