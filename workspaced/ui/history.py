"""The history of a sink: what is kept, the changes of an entry, and the differences between two moments."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from workspaced.core.problems import NotFoundProblem
from workspaced.core.timestamps import microseconds
from workspaced.http.responses import Response
from workspaced.security.permissions import DATA_SINKS_PUSH, DATA_SINKS_WRITE
from workspaced.settings.model import MOST_CHANGES, MOST_DAYS
from workspaced.ui.addresses import address, see_other
from workspaced.ui.page_request import ApiResponse, PageRefused, PageRequest, parse_response
from workspaced.ui.renderer import PageView, entry_digest, page_view
from workspaced.ui.value_chart import HEIGHT, WIDTH, ValueChart, quantity_of, value_chart
from workspaced.ui.workspaces import SECTION

_PAGE_LENGTH: Final = 50
_CHARTED: Final = 1_000
_PAGES_SEARCHED: Final = 3
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)


async def show_history(request: PageRequest, refused: PageRefused | None = None) -> PageView:
    """Show what is kept of a sink's history and, if the query has moments, what differs between them.

    ``refused``: the API has refused the settings of a form, which is shown again with what its user has typed.
    """
    workspace, sink, kept = await _sink(request)
    since, until = request.query.get("from", ""), request.query.get("to", "")
    found: ApiResponse | None = None
    wrong = ""
    if since:
        try:
            found = await _comparison(request, since, until)
        except PageRefused as not_compared:
            wrong = not_compared.sentence
    own = request.form if refused else {"changes": kept["ownChanges"], "days": kept["ownDays"]}
    view = page_view(
        "sink_history.html",
        f"{sink['label']} · History · {workspace['label']}",
        SECTION,
        own={name: "" if own.get(name) is None else own[name] for name in ("changes", "days")},
        refused=refused.sentence if refused else "",
        workspace=workspace,
        sink=sink,
        kept=kept,
        may_write=request.may(DATA_SINKS_WRITE),
        most_changes=MOST_CHANGES,
        most_days=MOST_DAYS,
        since=since,
        begun=(kept["knownFrom"] or "").rstrip("Z"),
        until=until,
        wrong=wrong,
        is_later="cursor" in request.query,
        comparison=found.record if found else None,
        next=_next(request, found, since=since, to=found.record["until"].rstrip("Z")) if found else "",
        base=address("workspaces", workspace["id"], "sinks", sink["visibleId"], "entries"),
    )
    return dataclasses.replace(view, status=refused.status) if refused else view


async def configure(request: PageRequest) -> PageView | Response:
    """Set what is kept of a sink's history, then show it; after a mistake show the form again."""
    names = request.names
    body = {name: _number(request.form.get(name, "")) for name in ("changes", "days")}
    try:
        await request.send("PATCH", "workspace", names["workspace"], "data-sink-history", names["sink"], body=body)
    except PageRefused as refused:
        return await show_history(request, refused)
    return see_other(address("workspaces", names["workspace"], "sinks", names["sink"], "history"))


async def show_entry_history(request: PageRequest) -> PageView:
    """Show the changes of an entry, the newest first; on the first page with a chart if the values are numbers."""
    workspace, sink, kept = await _sink(request)
    key = request.names["key"]
    path = _entry_path(request)
    cursor = request.query.get("cursor", "")
    found = await _changes(request, cursor)
    may_push = request.may(DATA_SINKS_PUSH)
    chart = None
    if not cursor and _are_numbers(found.value):
        chart = _chart((await request.get(*path, take=str(_CHARTED))).value)
    return page_view(
        "entry_history.html",
        f"{key} · History · {sink['label']} · {workspace['label']}",
        SECTION,
        workspace=workspace,
        sink=sink,
        key=key,
        kept=kept,
        changes=found.value,
        shown=await _present_digest(request) if may_push else "",
        cursor=cursor,
        may_push=may_push,
        is_later=bool(cursor),
        next=_next(request, found),
        chart=chart,
        lacks_chart=chart is None and not cursor and _has_numbers(found.value),
        chart_width=WIDTH,
        chart_height=HEIGHT,
    )


async def _present_digest(request: PageRequest) -> str:
    """Return the digest of the entry of the URL; empty if there is none."""
    names = request.names
    path = ("workspace", names["workspace"], "data-sink", names["sink"], names["key"])
    response = await request.api.request("GET", *path, counted=False)
    if response.status == NotFoundProblem.status:
        return ""
    return entry_digest((await parse_response(response)).record)


async def find_former(request: PageRequest) -> Mapping[str, Any]:
    """Return the value before the change that a form names, which may be on a later page now.

    Raises:
        PageRefused: the change is not kept any more.
    """
    cursor = request.form.get("cursor", "")
    for _ in range(_PAGES_SEARCHED):
        found = await _changes(request, cursor)
        for change in found.value:
            if change["id"] == request.form.get("change") and change["before"]:
                former: Mapping[str, Any] = change["before"]
                return former
        cursor = found.next_cursor
        if not cursor:
            break
    raise PageRefused(NotFoundProblem.status, "Not restored", "This change is not in the history any more.")


async def _changes(request: PageRequest, cursor: str) -> ApiResponse:
    return await request.get(*_entry_path(request), take=str(_PAGE_LENGTH), **({"cursor": cursor} if cursor else {}))


def _entry_path(request: PageRequest) -> tuple[str, ...]:
    """Return the path of an entry's history in the API, below ``/v1``."""
    names = request.names
    return ("workspace", names["workspace"], "data-sink-history", names["sink"], "entry", names["key"])


async def _sink(request: PageRequest) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    """Return the records of the workspace, of the sink and of what is kept."""
    names = request.names
    workspace = await request.workspace()
    sink = await request.get("workspace", names["workspace"], "data-sink", names["sink"], take="1")
    kept = await request.get("workspace", names["workspace"], "data-sink-history", names["sink"])
    return workspace, sink.record, kept.record


async def _comparison(request: PageRequest, since: str, until: str) -> ApiResponse:
    query = {"from": _moment(since), "take": str(_PAGE_LENGTH)}
    if until:
        query["to"] = _moment(until)
    if request.query.get("cursor"):
        query["cursor"] = request.query["cursor"]
    names = request.names
    return await request.get("workspace", names["workspace"], "data-sink-history", names["sink"], "comparison", **query)


def _moment(text: str) -> str:
    """Return the timestamp of a moment of the form, which is in UTC."""
    if not _MOMENT.fullmatch(text):
        raise PageRefused(400, "Not a moment", "Write a moment as 2026-11-23T09:30:00.")
    seconds = text if text.count(":") > 1 else f"{text}:00"
    return f"{seconds}Z"


def _next(request: PageRequest, found: ApiResponse, **query: str) -> str:
    """Return the URL of the next page; empty if there is none."""
    if not found.next_cursor:
        return ""
    names = request.names
    below = ("entries", names["key"], "history") if "key" in names else ("history",)
    renamed = {"from" if name == "since" else name: value for name, value in query.items()}
    return address(
        "workspaces", names["workspace"], "sinks", names["sink"], *below, **renamed, cursor=found.next_cursor
    )


def _number(text: str) -> object:
    """Return the number of a field; None if it is empty; other texts as they are, for the API's sentence."""
    text = text.strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _has_numbers(changes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether several values after the changes are numbers, so that a user expects a chart."""
    return sum(bool(change["after"] and quantity_of(change["after"]["value"])) for change in changes) > 1


def _are_numbers(changes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every value after one of the changes is a number, and there are two of them."""
    values = [change["after"]["value"] for change in changes if change["after"]]
    return len(values) > 1 and all(quantity_of(value) for value in values)


def _chart(changes: Sequence[Mapping[str, Any]]) -> ValueChart | None:
    after = [(change["time"], change["after"]["value"]) for change in reversed(changes) if change["after"]]
    return value_chart([(microseconds(time) // 1_000, time, value) for time, value in after])
