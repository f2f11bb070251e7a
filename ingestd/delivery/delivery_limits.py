"""How much a lane sends at once, and how patient it is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ingestd.core.backoff import Backoff
from ingestd.core.plan import UpdateWith

MissingSink: TypeAlias = Literal["create", "stop"]
"""What becomes of a sink that the service no longer has: it is created again with everything, or a person is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLimits:
    """The figures of every lane.

    ``in_flight_at_first`` and ``in_flight_at_most``: requests to the service at the same time, between which it adapts.
    ``unsettled_bytes``: what is answered, or being asked, but not yet settled, of a lane. ``gather_seconds``: how long an idle
    lane waits for more before it sends; 0: not at all. ``single_claim_items``: entries claimed at once in the single form.
    ``create_items`` and ``create_bytes``: what a new sink takes along; the document states no limit for it. ``settle_items`` and
    ``settle_seconds``: what was delivered in the single form is settled when so many are together or the first of them is so
    old. ``grace_seconds``: what requests in flight get at shutdown. ``denied_seconds``: after a 401 or a 403, one lane asks
    again for all within this time.
    """

    in_flight_at_first: int = 1
    in_flight_at_most: int = 32
    unsettled_claims: int = 16
    unsettled_bytes: int = 64 * 1024 * 1024
    gather_seconds: float = 0.0
    single_claim_items: int = 2_000
    single_claim_bytes: int = 8 * 1024 * 1024
    create_items: int = 5_000
    create_bytes: int = 4 * 1024 * 1024
    settle_items: int = 500
    settle_seconds: float = 0.1
    grace_seconds: float = 5.0
    denied_seconds: float = 10.0
    update_with: UpdateWith = "mass"
    missing_sink: MissingSink = "create"
    retry: Backoff = dataclasses.field(default_factory=lambda: Backoff(base_seconds=0.5, cap_seconds=30.0))
    pause: Backoff = dataclasses.field(default_factory=lambda: Backoff(base_seconds=30.0, cap_seconds=300.0))
