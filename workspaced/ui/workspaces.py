"""The workspaces that the key may read, and the data sinks of one."""

from __future__ import annotations

from typing import Final

from workspaced.core.json_body import encode
from workspaced.http.responses import Response
from workspaced.ui.addresses import address, see_other
from workspaced.ui.pager import Turn
from workspaced.ui.renderer import PageView
from workspaced.ui.visit import Reply, Visit

_AT_ONCE: Final = 50
_SINKS_AT_ONCE: Final = 100
SECTION: Final = "workspaces"


async def home(_visit: Visit) -> Response:
    """Where everybody starts."""
    return see_other(address("workspaces"))


async def list_workspaces(visit: Visit) -> PageView:
    """By label, some at a time; ``search`` is a part of the label."""
    search = visit.query.get("search", "").strip()
    turn = Turn(take=_AT_ONCE, skip=visit.number("skip"))
    found = await visit.get("workspace", filters=_label_contains(search), **turn.query, sortedBy="label")
    return PageView(
        template="workspaces.html",
        title="Workspaces",
        section=SECTION,
        values={
            "workspaces": found.value,
            "search": search,
            "pager": turn.pager(found.total, "workspaces", search=search),
        },
    )


async def show_workspace(visit: Visit) -> PageView:
    """Its data sinks."""
    workspace_id = visit.names["workspace"]
    workspace = await visit.get("workspace", workspace_id)
    turn = Turn(take=_SINKS_AT_ONCE, skip=visit.number("skip"))
    sinks = await visit.get("workspace", workspace_id, "data-sink", "list", **turn.query)
    return PageView(
        template="sinks.html",
        title=_label(workspace),
        section=SECTION,
        values={
            "workspace": workspace.record,
            "sinks": sinks.value,
            "total": sinks.total,
            "pager": turn.pager(sinks.total, "workspaces", workspace_id),
        },
    )


def _label(workspace: Reply) -> str:
    return str(workspace.record["label"])


def _label_contains(text: str) -> str:
    """The API's filter for it; a text that begins with a brace would be read as JSON, so it is put into some."""
    return encode({"label": {"contains": text}}).decode() if text.startswith("{") else text
