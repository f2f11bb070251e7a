"""API keys (service contract A1, A2, A3, A4, A5). A key itself is not shown by ``repr``."""

from __future__ import annotations

from datetime import datetime

from ingestd.client.records.base import Record


class Grant(Record, frozen=True, kw_only=True):
    """A role on one workspace; ``workspace_id`` None: on all."""

    workspace_id: str | None
    role: str


class ApiKey(Record, frozen=True, kw_only=True):
    """What is known of a key; ``expires_at`` None: never."""

    id: str
    name: str
    principal: str
    last_four: str
    scopes: tuple[str, ...]
    grants: tuple[Grant, ...]
    guest: bool
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class IssuedApiKey(ApiKey, frozen=True, kw_only=True):
    """A new key or a new secret of one. ``key`` is told once: None where an answer is repeated."""

    key: str | None = None

    def __repr__(self) -> str:
        return f"IssuedApiKey(id={self.id!r}, name={self.name!r})"
