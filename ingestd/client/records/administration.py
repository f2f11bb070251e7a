"""API keys (contract A1, A2, A3, A4, A5), the audit log (contract G26) and the state of the service."""

from __future__ import annotations

from datetime import datetime

from ingestd.client.records.base import Record


class Grant(Record, frozen=True, kw_only=True):
    """A role on one workspace, or on all if ``workspace_id`` is None."""

    workspace_id: str | None
    role: str


class ApiKey(Record, frozen=True, kw_only=True):
    """A key without its secret. ``expires_at`` None: it never expires."""

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
    """A new key, or a key with a new secret. ``key``: the secret; None in a repeated response. ``repr`` does not show it."""

    key: str | None = None

    def __repr__(self) -> str:
        return f"IssuedApiKey(id={self.id!r}, name={self.name!r})"


class AuditRow(Record, frozen=True, kw_only=True):
    """One action of a principal. ``changed``: names of members. ``counts``: of the affected records, by kind."""

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


class Health(Record, frozen=True, kw_only=True):
    """The state of the service; ``status`` is ``ok``. Any other state is a response with status 503."""

    status: str
