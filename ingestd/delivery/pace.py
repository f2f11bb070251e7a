"""How much a lane sends at once, and how patient it is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ingestd.core.backoff import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The figures of every lane.

    ``bulk_in_flight`` and ``single_in_flight``: requests at the same time, of a lane. ``single_claim_items``: entries
    claimed at once in the single form. ``create_items`` and ``create_bytes``: what a new sink takes along; the document
    states no limit for it. ``settle_items`` and ``settle_seconds``: what was delivered in the single form is settled when
    so many are together or the first of them is so old. ``grace_seconds``: what requests in flight get at shutdown.
    """

    bulk_in_flight: int = 2
    single_in_flight: int = 8
    single_claim_items: int = 500
    single_claim_bytes: int = 8 * 1024 * 1024
    create_items: int = 5_000
    create_bytes: int = 4 * 1024 * 1024
    settle_items: int = 200
    settle_seconds: float = 0.1
    grace_seconds: float = 5.0
    retry: Backoff = dataclasses.field(default_factory=lambda: Backoff(base_seconds=0.5, cap_seconds=30.0))
    pause: Backoff = dataclasses.field(default_factory=lambda: Backoff(base_seconds=30.0, cap_seconds=300.0))
