"""The pages of a sink's history: its settings, the changes of an entry, and the differences between two moments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from workspaced.core.problems import NotFoundProblem
from workspaced.http.responses import Response
from workspaced.security.permissions import DATA_SINKS_PUSH, DATA_SINKS_WRITE
from workspaced.settings.model import MOST_CHANGES, MOST_DAYS
from workspaced.ui.addresses import address, see_other
from workspaced.ui.fed_entries import ANY, warning
from workspaced.ui.moments import moment_stamp
from workspaced.ui.page_request import ApiResponse, PageRefused, PageRequest, parse_response
from workspaced.ui.recorded_series import chart_view, entry_history_path, recorded_series, series_of
from workspaced.ui.renderer import PageView, entry_digest, page_view, title_of
from workspaced.ui.value_chart import quantity_of
from workspaced.ui.workspaces import SECTION

_PAGE_LENGTH: Final = 50
_PAGES_SEARCHED: Final = 3


async def show_history(request: PageRequest, refused: PageRefused | None = None) -> PageView:
    """Show the settings of a sink's history and, if the query has two moments, the differences between them.

    ``refused``: the API refused the settings of the form. The form is shown again with the user's input.
    """
    workspace, sink, kept = await history_records(request)
    since, until = request.query.get("from", ""), request.query.get("to", "")
    found: ApiResponse | None = None
    wrong = ""
    if since:
        try:
            found = await compare(request, since, until, request.query.get("cursor", ""))
        except PageRefused as not_compared:
            wrong = not_compared.sentence
    own = request.form if refused else {"changes": kept["ownChanges"], "days": kept["ownDays"]}
    view = page_view(
        "sink_history.html",
        title_of(sink["label"], "History", workspace["label"]),
        SECTION,
        own={name: "" if own.get(name) is None else own[name] for name in ("changes", "days")},
        refused=refused.sentence if refused else "",
        workspace=workspace,
        sink=sink,
        kept=kept,
        may_write=request.may(DATA_SINKS_WRITE),
        may_push=request.may(DATA_SINKS_PUSH),
        cursor=request.query.get("cursor", ""),
        most_changes=MOST_CHANGES,
        most_days=MOST_DAYS,
        since=since,
        begun=(kept["knownFrom"] or "").rstrip("Z"),
        until=until,
        wrong=wrong,
        any_fed=ANY,
        is_later="cursor" in request.query,
        comparison=found.record if found else None,
        next=_next(request, found, since=since, to=found.record["until"].rstrip("Z")) if found else "",
        base=address("workspaces", workspace["id"], "sinks", sink["visibleId"], "entries"),
    )
    return dataclasses.replace(view, status=refused.status) if refused else view


async def configure(request: PageRequest) -> PageView | Response:
    """Change the settings of a sink's history, then show them. If the API refuses the settings, show the form again."""
    names = request.names
    body = {name: _number(request.form.get(name, "")) for name in ("changes", "days")}
    try:
        await request.send("PATCH", "workspace", names["workspace"], "data-sink-history", names["sink"], body=body)
    except PageRefused as refused:
        return await show_history(request, refused)
    return see_other(address("workspaces", names["workspace"], "sinks", names["sink"], "history"))


async def show_entry_history(request: PageRequest) -> PageView:
    """Show the changes of an entry, the newest first. The first page has a chart if at least two values are numbers."""
    workspace, sink, kept = await history_records(request)
    key = request.names["key"]
    cursor = request.query.get("cursor", "")
    found = await _changes(request, cursor)
    may_push = request.may(DATA_SINKS_PUSH)
    present = await _present_entry(request) if may_push else {}
    view = None
    if not cursor and _count_numbers(found.value) > 1:
        series = await recorded_series(request, key, kept) if found.next_cursor else series_of(key, found, kept)
        view = chart_view(
            request, [series], "workspaces", workspace["id"], "sinks", sink["visibleId"], "entries", key, "history"
        )
    return page_view(
        "entry_history.html",
        title_of(key, "History", sink["label"], workspace["label"]),
        SECTION,
        workspace=workspace,
        sink=sink,
        key=key,
        kept=kept,
        changes=found.value,
        shown=entry_digest(present) if present else "",
        warning=warning(sink, present),
        cursor=cursor,
        may_push=may_push,
        is_later=bool(cursor),
        next=_next(request, found),
        view=view,
    )


async def _present_entry(request: PageRequest) -> Mapping[str, Any]:
    """Return the record, with its origin, of the entry in the URL; empty if there is no such entry."""
    names = request.names
    path = ("workspace", names["workspace"], "data-sink", names["sink"], names["key"])
    response = await request.api.request("GET", *path, query={"origin": "true"}, counted=False)
    return {} if response.status == NotFoundProblem.status else (await parse_response(response)).record


async def find_former(request: PageRequest) -> Mapping[str, Any]:
    """Return the value before or after the change that a form names. The change may have moved to a later page.

    Raises:
        PageRefused: the change is not found on the next few pages.
    """
    cursor = request.form.get("cursor", "")
    side = "after" if request.form.get("side") == "after" else "before"
    for _ in range(_PAGES_SEARCHED):
        found = await _changes(request, cursor)
        for change in found.value:
            if change["id"] == request.form.get("change") and change[side]:
                former: Mapping[str, Any] = change[side]
                return former
        cursor = found.next_cursor
        if not cursor:
            break
    raise PageRefused(NotFoundProblem.status, "Not restored", "This change is not in the history any more.")


async def _changes(request: PageRequest, cursor: str) -> ApiResponse:
    query = {"take": str(_PAGE_LENGTH), "origin": "true", **({"cursor": cursor} if cursor else {})}
    return await request.get(*entry_history_path(request, request.names["key"]), **query)


async def history_records(request: PageRequest) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    """Return the records of the workspace, of the sink, and of the settings of the sink's history."""
    names = request.names
    workspace = await request.workspace()
    sink = await request.get("workspace", names["workspace"], "data-sink", names["sink"], take="1", origin="true")
    kept = await request.get("workspace", names["workspace"], "data-sink-history", names["sink"])
    return workspace, sink.record, kept.record


async def compare(request: PageRequest, since: str, until: str, cursor: str) -> ApiResponse:
    """Return a page of the differences between two moments. If ``until`` is empty, the second moment is now.

    Raises:
        PageRefused: ``since`` or ``until`` is not a moment, or the API responds with an error.
    """
    query = {"from": moment_stamp(since), "take": str(_PAGE_LENGTH)}
    if until:
        query["to"] = moment_stamp(until)
    if cursor:
        query["cursor"] = cursor
    names = request.names
    return await request.get("workspace", names["workspace"], "data-sink-history", names["sink"], "comparison", **query)


def _next(request: PageRequest, found: ApiResponse, **query: str) -> str:
    """Return the URL of the next page; empty on the last page."""
    if not found.next_cursor:
        return ""
    names = request.names
    below = ("entries", names["key"], "history") if "key" in names else ("history",)
    renamed = {"from" if name == "since" else name: value for name, value in query.items()}
    return address(
        "workspaces", names["workspace"], "sinks", names["sink"], *below, **renamed, cursor=found.next_cursor
    )


def _number(text: str) -> object:
    """Return the number in a field; None if the field is empty. Other texts are returned, so that the API reports the error."""
    text = text.strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _count_numbers(changes: Sequence[Mapping[str, Any]]) -> int:
    """Return how many of the values that the changes show are numbers."""
    states = [changes[-1]["before"], *(change["after"] for change in changes)] if changes else []
    return sum(bool(state and quantity_of(state["value"])) for state in states)
