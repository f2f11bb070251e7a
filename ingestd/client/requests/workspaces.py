"""Workspaces (contract WS1, WS2, WS3, WS4, WS5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.paging import Listing
from ingestd.client.reading import one_or_many, versioned
from ingestd.client.records import Workspace
from ingestd.client.request import Request
from ingestd.client.requests.building import SortOrder, headers, members, query

_WORKSPACE = versioned(Workspace)
_WORKSPACES = one_or_many(Workspace)


def list_workspaces(
    *,
    filters: str | Mapping[str, Any] | None = None,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
) -> Request[tuple[Workspace, ...]]:
    """The workspaces that the key may read.

    ``filters``: a part of the label, or a mapping like ``{"label": {"startsWith": "Rover"}}`` (contract W2).
    """
    text = filters if filters is None or isinstance(filters, str) else msgspec.json.encode(filters).decode()
    return Request(
        operation=operations.LIST_WORKSPACES,
        read=_WORKSPACES,
        query=query(filters=text, take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by),
    )


def iter_workspaces(
    *,
    filters: str | Mapping[str, Any] | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
    page_length: int = 100,
) -> Listing[Workspace]:
    """The same, asked for page by page."""
    whole = list_workspaces(filters=filters, sort_order=sort_order, sorted_by=sorted_by)
    return Listing(whole=whole, page_length=page_length, identity=lambda workspace: workspace.id)


def get_workspace(workspace: str, *, if_none_match: str | None = None) -> Request[Workspace]:
    """One workspace."""
    return Request(
        operation=operations.GET_WORKSPACE,
        read=_WORKSPACE,
        names={"workspace": workspace},
        headers=headers(if_none_match=if_none_match),
    )


def create_workspace(
    label: str,
    *,
    public_can_read_enabled: bool | UnsetType = UNSET,
    current_workspace_version: str | UnsetType = UNSET,
    exports_enabled: bool | UnsetType = UNSET,
    guests_enabled: bool | UnsetType = UNSET,
    statuses: Sequence[str] | UnsetType = UNSET,
    id: str | UnsetType = UNSET,  # noqa: A002 - the document's own name
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[Workspace]:
    """A new workspace with its root block. Labels are not unique: only an ``idempotency_key`` makes it repeatable."""
    return Request(
        operation=operations.CREATE_WORKSPACE,
        read=_WORKSPACE,
        body=members(
            label=label,
            publicCanReadEnabled=public_can_read_enabled,
            currentWorkspaceVersion=current_workspace_version,
            exportsEnabled=exports_enabled,
            guestsEnabled=guests_enabled,
            statuses=statuses,
            id=id,
        ),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def update_workspace(
    workspace: str,
    *,
    label: str | UnsetType = UNSET,
    root_block: Mapping[str, Any] | UnsetType = UNSET,
    if_match: str | None = None,
    client_id: str | None = None,
) -> Request[Workspace]:
    """Change the label, or the root block; a ``root_block`` with the id of another block makes that one the root."""
    return Request(
        operation=operations.UPDATE_WORKSPACE,
        read=_WORKSPACE,
        names={"workspace": workspace},
        body=members(label=label, rootBlock=root_block),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def delete_workspace(
    workspace: str, *, if_match: str | None = None, client_id: str | None = None
) -> Request[Workspace]:
    """Remove a workspace with everything in it; answers what it was."""
    return Request(
        operation=operations.DELETE_WORKSPACE,
        read=_WORKSPACE,
        names={"workspace": workspace},
        headers=headers(if_match=if_match, client_id=client_id),
    )
