"""The pages of workspaces: the list of workspaces that the user's API key may read, and the data sinks of a workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from workspaced.core.json_body import decode, encode
from workspaced.http.responses import Response
from workspaced.security.permissions import (
    DATA_SINKS_WRITE,
    WORKSPACES_CREATE,
    WORKSPACES_DELETE,
    WORKSPACES_WRITE,
)
from workspaced.ui.addresses import address, see_other
from workspaced.ui.page_request import PageRequest
from workspaced.ui.pager import PagePosition, sort_of
from workspaced.ui.renderer import PageView, page_view

_PAGE_LENGTH: Final = 50
_SINKS_LENGTH: Final = 100
SECTION: Final = "workspaces"
SEARCHED: Final[Mapping[str, str]] = {"key": "Key", "value": "Value", "all": "Key or value"}
"""The fields that a search can cover: their labels, by their names in the API."""


async def home(_request: PageRequest) -> Response:
    """Redirect to the first page."""
    return see_other(address("workspaces"))


async def list_workspaces(request: PageRequest) -> PageView:
    """Show the workspaces, by default sorted by label. ``search`` in the query is a part of the label."""
    search = request.query.get("search", "").strip()
    list_page = PagePosition(take=_PAGE_LENGTH, skip=request.number("skip"))
    sort = sort_of(request, label="label", changed="updatedAt")
    found = await request.get("workspace", filters=_label_contains(search), **list_page.query, **sort.query)
    return page_view(
        "workspaces.html",
        "Workspaces",
        SECTION,
        workspaces=found.value,
        search=search,
        may_create=request.may(WORKSPACES_CREATE),
        sort=sort.chosen,
        pager=list_page.pager(found.total, "workspaces", search=search, sort=sort.chosen),
    )


async def show_workspace(request: PageRequest) -> PageView:
    """Show the data sinks of a workspace."""
    workspace_id = request.names["workspace"]
    workspace = await request.workspace()
    list_page = PagePosition(take=_SINKS_LENGTH, skip=request.number("skip"))
    sort = sort_of(request, id="serial", label="label", changed="updatedAt")
    sinks = await request.get("workspace", workspace_id, "data-sink", "list", **list_page.query, **sort.query)
    counts = {
        sink["id"]: await request.count("workspace", workspace_id, "data-sink", sink["id"]) for sink in sinks.value
    }
    return page_view(
        "sinks.html",
        workspace["label"],
        SECTION,
        workspace=workspace,
        sinks=sinks.value,
        counts=counts,
        icons={sink["id"]: shown_icon(sink) for sink in sinks.value},
        total=sinks.total,
        search="",
        searched="all",
        searches=SEARCHED,
        may_edit=request.may(WORKSPACES_WRITE),
        may_delete=request.may(WORKSPACES_DELETE),
        may_write=request.may(DATA_SINKS_WRITE),
        sort=sort,
        here=address("workspaces", workspace_id),
        pager=list_page.pager(sinks.total, "workspaces", workspace_id, sort=sort.chosen),
    )


def _label_contains(text: str) -> str:
    """Return the API filter for labels that contain ``text``. A text that begins with ``{`` is wrapped: the API parses it."""
    return encode({"label": {"contains": text}}).decode() if text.startswith("{") else text


_COLOR: Final = re.compile(r"#[0-9A-Fa-f]{3,8}|[A-Za-z]{1,30}")


def icon_of(sink: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the members of the icon; None without an icon. A setting of the service makes icons JSON texts (contract S3)."""
    icon: Any = sink["icon"]
    if isinstance(icon, str):
        icon = decode(icon.encode())
    return icon if isinstance(icon, Mapping) else None


def shown_icon(sink: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return the icon's ``label`` and ``color`` to show. ``color`` is empty if it is neither a name nor a hexadecimal code."""
    icon = icon_of(sink) or {}
    label = ", ".join(str(icon[part]) for part in ("name", "source", "color") if icon.get(part))
    color = str(icon.get("color") or "")
    return {"label": label, "color": color if _COLOR.fullmatch(color) else ""} if label else None
