"""The objects that the parts of a lane share."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TypeAlias

import msgspec

from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.delivery.claim_results import ClaimResults
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.delivery.idempotency import IdempotencyKeys
from ingestd.delivery.limiter import Limiter
from ingestd.delivery.read_back import ReadBack
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.telemetry.event import Emit

SinkLocks: TypeAlias = defaultdict[tuple[str, str], asyncio.Lock]
"""A lock for each name of a sink in a workspace, by the id of the workspace and the name. All lanes share the locks."""


class LaneParts(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a lane's sink in the configuration, and the objects that resolve the sink and deliver to it."""

    address: SinkAddress
    mirror: DeliveryStore
    client: ServiceClient
    emit: Emit
    limiter: Limiter
    limits: DeliveryLimits
    keys: IdempotencyKeys
    results: ClaimResults
    read_back: ReadBack
    resolving: SinkLocks
