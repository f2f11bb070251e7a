"""The audit log: who did what and when, of one workspace or of all."""

from __future__ import annotations

from typing import Final

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
}
_PAGE_LENGTH: Final = 100


async def show_log(request: PageRequest) -> PageView:
    """Show rows of the audit log, the newest first; without a workspace in the query those of all workspaces.

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
        rows=found.value if found else None,
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
