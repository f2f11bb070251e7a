"""The audit log (service contract G26)."""

from __future__ import annotations

from datetime import datetime

from ingestd.client.records.base import Record


class AuditRow(Record, frozen=True, kw_only=True):
    """Who did what; ``changed`` names members and never tells values, ``counts`` is for what was done to many."""

    id: str
    time: datetime
    principal: str
    key_id: str | None
    client_id: str | None
    request_id: str | None
    ip: str | None
    action: str
    resource_type: str
    resource_id: str | None
    workspace_id: str | None
    changed: tuple[str, ...]
    counts: dict[str, int]
