"""What is done about what is rejected. ``chosen``: the selection in words; ``by``: the account that asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionsRetried(Event):
    """Somebody put rejections back: ``records`` are mapped at their partition's next reading, ``entries`` are pending."""

    by: str
    chosen: str
    records: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionsDropped(Event):
    """Somebody made the daemon forget rejections: what they would have said is not said until their source changes."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    by: str
    chosen: str
    rejections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionsForgotten(Event):
    """Rejections were older or more than the configuration keeps (``rejected``), and are forgotten as if dropped."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    rejections: int
    keep_days: float | None
    keep_rows: int | None
