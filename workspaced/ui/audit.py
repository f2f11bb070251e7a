"""The page of the audit log of one workspace or of all workspaces: who changed what, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from workspaced.security.permissions import AUDIT_READ
from workspaced.ui.addresses import address
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.renderer import PageView, page_view

SECTION: Final = "audit"
GROUPS: Final = {
    "": "All actions",
    "page_session.*": "Sign-ins and sign-outs",
    "authentication.*": "Rejected keys",
    "api_key.*": "Keys",
    "workspace.*": "Workspaces",
    "data_sink.*": "Data sinks",
    "block.*": "Blocks",
    "cloud_storage.*": "Files",
    "webhook.*": "Webhooks",
    "writer_lease.*": "Leases of writers",
}
_PAGE_LENGTH: Final = 100
_PARTS: Final = {"data_sink": "sinks", "block": "blocks", "cloud_storage.file": "files"}
"""The segment of a page's URL below the workspace, by resource type."""
_ENDS: Final = (".deleted", ".purged")


async def show_log(request: PageRequest) -> PageView:
    """Show rows of the audit log, the newest first. Without a workspace in the query, show the rows of all workspaces.

    Raises:
        PageRefused: the key may not read these rows.
    """
    workspace_id = request.query.get("workspace", "")
    action = request.query.get("action", "")
    query = {"take": str(_PAGE_LENGTH), "action": action}
    query |= {"workspaceId": workspace_id} if workspace_id else {}
    query |= {name: request.query[name] for name in ("cursor",) if request.query.get(name)}
    days = {name: request.query.get(name, "") for name in ("from", "to")}
    ends = {"from": "T00:00:00Z", "to": "T23:59:59.999Z"}
    query |= {name: f"{day}{ends[name]}" for name, day in days.items() if day}
    workspaces = [
        (one["id"], one["label"]) for one in (await request.get("workspace", take="1000", sortedBy="label")).value
    ]
    try:
        found = await request.get("audit-log", **query)
    except PageRefused as refused:
        if refused.status != 403 or workspace_id or not request.session.principal.may_somewhere(AUDIT_READ):
            raise
        found = None
    return page_view(
        "audit.html",
        "Audit log",
        SECTION,
        rows=[(row, page_of(row)) for row in found.value] if found else None,
        groups=GROUPS,
        action=action,
        days=days,
        workspaces=workspaces,
        labels=dict(workspaces),
        workspace_id=workspace_id,
        is_later="cursor" in request.query,
        next=address("audit", **{"action": action, "workspace": workspace_id, **days, "cursor": found.next_cursor})
        if found and found.next_cursor
        else "",
    )


def page_of(row: Mapping[str, Any]) -> str:
    """Return the URL of the page of a row's resource, or an empty text. Entries have no URL: their rows name no sink."""
    kind, number, workspace_id = row["resourceType"], row["resourceId"], row["workspaceId"]
    if not number or row["action"].endswith(_ENDS):
        return ""
    if kind == "workspace":
        return address("workspaces", number)
    if kind == "webhook":
        return address("webhooks", number)
    return address("workspaces", workspace_id, _PARTS[kind], number) if kind in _PARTS and workspace_id else ""
