"""How the service is (contract G23)."""

from __future__ import annotations

from ingestd.client import operations
from ingestd.client.reading import one
from ingestd.client.records import Health
from ingestd.client.request import Request

_HEALTH = one(Health)


def check_live() -> Request[Health]:
    """Whether the process is up."""
    return Request(operation=operations.CHECK_LIVE, read=_HEALTH)


def check_ready() -> Request[Health]:
    """Whether it can serve; ``Unavailable`` until its database works, and once it is stopping."""
    return Request(operation=operations.CHECK_READY, read=_HEALTH)
