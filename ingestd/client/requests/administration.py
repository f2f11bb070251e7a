"""API keys (contract A2, A3, A4, A5), the audit log (contract G26) and the service's state (contract G23)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal, TypedDict, Unpack

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.declarations import CreateOptions, IterOptions, ListOptions, PageOptions, SortOrder, declare, paged
from ingestd.client.records import ApiKey, AuditRow, Health, IssuedApiKey


class AuditOptions(TypedDict, total=False):
    """Which rows of the audit log. ``action``: a name, or ``data_sink.*``. Times need an offset."""

    workspace_id: str | None
    action: str | None
    since: datetime | None
    until: datetime | None
    sort_order: SortOrder | None


class AuditListOptions(AuditOptions, total=False):
    """Which part of these rows."""

    take: int | None
    skip: int | None


class AuditIterOptions(AuditOptions, PageOptions, total=False):
    """How many rows each page has."""


class AdministrationMethods:
    """API keys, which require the scope ``admin``, the audit log, and the state of the service."""

    @declare(operations.LIST_API_KEYS)
    def list_api_keys(self, **options: Unpack[ListOptions]) -> tuple[ApiKey, ...]:
        """Return every key, revoked ones too, the oldest first; with ``take`` or ``skip``, a part."""

    @paged(list_api_keys, page_length=200)
    def iter_api_keys(self, **options: Unpack[IterOptions]) -> Iterator[ApiKey]:
        """Return every key, read page by page."""

    @declare(operations.GET_API_KEY)
    def get_api_key(self, key: str) -> ApiKey:
        """Return one key by its id, which is not the secret."""

    @declare(operations.CREATE_API_KEY)
    def create_api_key(
        self,
        name: str,
        *,
        role: str,
        workspace_id: str | UnsetType = UNSET,
        scopes: Sequence[str] | UnsetType = UNSET,
        expires_at: datetime | Literal["never"] | UnsetType = UNSET,
        guest: bool | UnsetType = UNSET,
        **options: Unpack[CreateOptions],
    ) -> IssuedApiKey:
        """Create a key; only this response contains it. By default it is for all workspaces, and expires after a year."""

    @declare(operations.ROTATE_API_KEY, optional_body=True)
    def rotate_api_key(
        self, key: str, *, grace_period_seconds: int | None = None, **options: Unpack[CreateOptions]
    ) -> IssuedApiKey:
        """Replace the secret of a key; only this response contains it. By default the old one is valid for a day."""

    @declare(operations.REVOKE_API_KEY)
    def revoke_api_key(self, key: str, *, client_id: str | None = None) -> ApiKey:
        """Revoke a key with all its secrets."""

    @declare(operations.LIST_AUDIT_LOG, rename={"since": "from", "until": "to"})
    def list_audit_log(self, **options: Unpack[AuditListOptions]) -> tuple[AuditRow, ...]:
        """Return the newest hundred rows by default, or the given part of the log."""

    @paged(list_audit_log, page_length=500)
    def iter_audit_log(self, **options: Unpack[AuditIterOptions]) -> Iterator[AuditRow]:
        """Return every row, the newest first, read page by page."""

    @declare(operations.CHECK_LIVE)
    def check_live(self) -> Health:
        """Check that the process runs."""

    @declare(operations.CHECK_READY)
    def check_ready(self) -> Health:
        """Check that it serves. It is ``Unavailable`` until its database works, and while it stops."""
