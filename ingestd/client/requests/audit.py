"""The audit log (contract G26)."""

from __future__ import annotations

from datetime import datetime

from ingestd.client import operations
from ingestd.client.paging import Listing
from ingestd.client.reading import many
from ingestd.client.records import AuditRow
from ingestd.client.request import Request
from ingestd.client.requests.building import SortOrder, query

_ROWS = many(AuditRow)


def list_audit_log(
    *,
    workspace_id: str | None = None,
    action: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
) -> Request[tuple[AuditRow, ...]]:
    """The newest hundred rows, unless told otherwise. ``action``: a name, or ``data_sink.*``; instants need an offset."""
    return Request(
        operation=operations.LIST_AUDIT_LOG,
        read=_ROWS,
        query=query(
            workspaceId=workspace_id,
            action=action,
            take=take,
            skip=skip,
            sortOrder=sort_order,
            **{"from": since.isoformat() if since else None, "to": until.isoformat() if until else None},
        ),
    )


def iter_audit_log(
    *,
    workspace_id: str | None = None,
    action: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    sort_order: SortOrder | None = None,
    page_length: int = 500,
) -> Listing[AuditRow]:
    """Every row, the newest first, asked for page by page."""
    whole = list_audit_log(workspace_id=workspace_id, action=action, since=since, until=until, sort_order=sort_order)
    return Listing(whole=whole, page_length=page_length, identity=lambda row: row.id)
