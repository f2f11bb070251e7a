"""Search of a workspace: data sinks by label, id, tags and description, and the entries of all data sinks by key and value.

A page reads one sink after the other, until it has enough entries or has examined about `_EXAMINED` entries. The link to the
next page has the sink and the cursor at which the search continues.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from workspaced.http.pagination import Cursor
from workspaced.ui import entries as entry_list
from workspaced.ui.addresses import address
from workspaced.ui.page_request import PageRequest, parse_response
from workspaced.ui.renderer import PageView, page_view, title_of
from workspaced.ui.workspaces import SEARCHED, SECTION

_ENTRIES: Final = 50
_SINKS: Final = 50
_SINKS_BY_LABEL: Final = 50
_EXAMINED: Final = 50_000
_LISTED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryOfSink:
    """An entry, and the sink that contains it."""

    sink: Mapping[str, Any]
    entry: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEnd:
    """Where the search for a page stopped. ``following``: a next page can continue the search. ``sentence``: what was examined.

    ``sinks``: how many sinks were searched completely. ``cursor``: the cursor in the next sink; empty: its start.
    """

    following: bool
    sinks: int
    cursor: str = ""
    sentence: str = ""


async def search_workspace(request: PageRequest) -> PageView:
    """Show the data sinks and entries of a workspace that contain a text."""
    workspace = await request.workspace()
    text = request.query.get("search", "")
    where = found if (found := request.query.get("in", "all")) in SEARCHED else "all"
    skip, cursor = request.number("skip"), request.query.get("cursor", "")
    entries: list[EntryOfSink] = []
    end = SearchEnd(following=False, sinks=0)
    by_label: list[Mapping[str, Any]] = []
    if text:
        sinks = await _sinks(request)
        by_label = [] if skip or cursor else _labelled(sinks, text)
        entries, end = await _entries(request, sinks, text, where, skip=skip, cursor=cursor)
        deadline = time.monotonic() + entry_list.SEARCH_SECONDS
        while not entries and end.following and time.monotonic() < deadline:
            entries, end = await _entries(request, sinks, text, where, skip=end.sinks, cursor=end.cursor)
    return page_view(
        "search.html",
        title_of(*([text] if text else []), f"Search in {workspace['label']}"),
        SECTION,
        workspace=workspace,
        search=text,
        searched=where,
        searches=SEARCHED,
        sinks=by_label[:_SINKS_BY_LABEL],
        hidden_sinks=max(len(by_label) - _SINKS_BY_LABEL, 0),
        entries=entries,
        end=end,
        is_later=bool(skip or cursor),
        next=address(
            "workspaces",
            workspace["id"],
            "search",
            **{"search": text, "in": where, "skip": end.sinks or None, "cursor": end.cursor},
        )
        if end.following
        else "",
    )


async def _sinks(request: PageRequest) -> list[Mapping[str, Any]]:
    """Return all sinks of the workspace, without entries. A quota limits the number of sinks."""
    sinks: list[Mapping[str, Any]] = []
    while True:
        path = ("workspace", request.names["workspace"], "data-sink", "list")
        found = await request.get(*path, sortedBy="serial", take=str(_LISTED), skip=str(len(sinks)))
        sinks += found.value
        if len(sinks) >= found.total or not found.value:
            return sinks


def _labelled(sinks: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    wanted = text.casefold()
    return [
        sink
        for sink in sinks
        if any(wanted in (sink[member] or "").casefold() for member in ("label", "visibleId", "tags", "description"))
    ]


async def _entries(
    request: PageRequest, sinks: Sequence[Mapping[str, Any]], text: str, where: str, *, skip: int, cursor: str
) -> tuple[list[EntryOfSink], SearchEnd]:
    """Return the entries of a page, and where the search stopped."""
    entries: list[EntryOfSink] = []
    examined = 0
    for number, sink in enumerate(sinks[skip : skip + _SINKS], start=skip):
        path = ("workspace", request.names["workspace"], "data-sink", sink["id"])
        count = await request.count(*path)
        if count:
            query = {"search": text, "searchIn": where, "sortedBy": "key", "take": str(_ENTRIES - len(entries))}
            query |= {"cursor": cursor} if cursor else {}
            found = await parse_response(await request.api.request("GET", *path, query=query, counted=False))
            entries += [EntryOfSink(sink=sink, entry=entry) for entry in found.record["entries"]]
            if found.next_cursor:
                key = Cursor.decoded(found.next_cursor).position[0]
                sentence = f"Examined up to the key {key} of {sink['label']} ({sink['visibleId']})."
                return entries, SearchEnd(following=True, sinks=number, cursor=found.next_cursor, sentence=sentence)
        cursor = ""
        examined += min(count, _EXAMINED)
        is_full = len(entries) >= _ENTRIES or examined >= _EXAMINED
        if number + 1 < len(sinks) and (is_full or number + 1 == skip + _SINKS):
            sentence = f"Examined up to {sink['label']} ({sink['visibleId']}), {number + 1} of {len(sinks)} data sinks."
            return entries, SearchEnd(following=True, sinks=number + 1, sentence=sentence)
    return entries, SearchEnd(following=False, sinks=len(sinks))
