"""Limits of delivery: how much a lane sends at once, and how long it waits."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ingestd.core.backoff import Backoff
from ingestd.core.plan import UpdateWith

MissingSink: TypeAlias = Literal["create", "stop"]
"""If the service no longer has a sink: create it again with all entries, or stop its lane until a person acts."""


class DeliveryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of every lane.

    ``in_flight_at_first``, ``in_flight_at_most``: first and largest number of concurrent requests, which adapts to the service.
    ``unacknowledged_claims``, ``unacknowledged_bytes``: claims of a lane that are sent but not yet acknowledged in the mirror.
    ``gather_seconds``: how long an idle lane waits for more entries before it sends; 0: it sends at once.
    ``single_claim_items``, ``single_claim_bytes``: the size of a claim with entries that are sent one by one.
    ``create_items``, ``create_bytes``: the entries in the request that creates a sink; the interface document has no limit.
    ``acknowledge_items``, ``acknowledge_seconds``: entries that are sent one by one are acknowledged in groups of this size. A
    smaller group is acknowledged when its oldest entry is this old.
    ``grace_seconds``: how long requests in flight may continue at shutdown.
    ``denied_seconds``: the longest time after a 401 or a 403 until one lane tries again for all lanes.
    ``page``: the address of the daemon's page, to which origins of entries link; empty: origins have no link.
    """

    in_flight_at_first: int = 1
    in_flight_at_most: int = 32
    unacknowledged_claims: int = 16
    unacknowledged_bytes: int = 64 * 1024 * 1024
    gather_seconds: float = 0.0
    single_claim_items: int = 2_000
    single_claim_bytes: int = 8 * 1024 * 1024
    create_items: int = 5_000
    create_bytes: int = 4 * 1024 * 1024
    acknowledge_items: int = 500
    acknowledge_seconds: float = 0.1
    grace_seconds: float = 5.0
    denied_seconds: float = 10.0
    page: str = ""
    update_with: UpdateWith = "mass"
    missing_sink: MissingSink = "create"
    retry: Backoff = msgspec.field(default_factory=lambda: Backoff(base_seconds=0.5, cap_seconds=30.0))
    pause: Backoff = msgspec.field(default_factory=lambda: Backoff(base_seconds=30.0, cap_seconds=300.0))
