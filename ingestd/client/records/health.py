"""How the service is."""

from __future__ import annotations

from ingestd.client.records.base import Record


class Health(Record, frozen=True, kw_only=True):
    """``status`` is ``ok``: what is not ok answers 503."""

    status: str
