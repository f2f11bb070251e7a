"""The entries of a sink, searched, sorted and in pages; one entry; and the entries as CSV."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from workspaced.http.pagination import Cursor
from workspaced.http.responses import Response
from workspaced.security.permissions import DATA_SINKS_PUSH, DATA_SINKS_WRITE
from workspaced.ui.addresses import address
from workspaced.ui.page_request import ApiResponse, PageRefused, PageRequest, api_error, parse_response
from workspaced.ui.pager import PagePosition, Pager
from workspaced.ui.renderer import PageView, page_view, title_of
from workspaced.ui.workspaces import SEARCHED, SECTION, shown_icon

PAGE_LENGTH: Final = 100
IMPORTED: Final = {"added": "created", "changed": "updated", "same": "unchanged", "rejected": "rejected"}
"""The parameters of a sink's URL after an import, by the API's effects."""
SEARCH_SECONDS: float = 0.3
"""A search that finds nothing in a part of the entries begins further parts for this time, before a user has to ask for more."""
_SORTS: Final[Mapping[str, tuple[str, str]]] = {
    "key": ("key", "ASC"),
    "key-last": ("key", "DESC"),
    "newest": ("updatedAt", "DESC"),
    "oldest": ("updatedAt", "ASC"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRange:
    """A part of a sink's entries: a search, an order, and a page. ``searched``: keys, values or both, as in the API."""

    workspace_id: str
    sink: str
    search: str
    searched: str
    sort: str
    list_page: PagePosition

    @property
    def path(self) -> tuple[str, ...]:
        """Return the sink's path in the API, below ``/v1``."""
        return ("workspace", self.workspace_id, "data-sink", self.sink)

    @property
    def order(self) -> dict[str, str]:
        """Return the API's query without the page."""
        by, order = _SORTS[self.sort]
        search = {"search": self.search, "searchIn": self.searched} if self.search else {}
        return {**search, "sortedBy": by, "sortOrder": order}

    @property
    def query(self) -> dict[str, str]:
        """Return the API's query."""
        return {**self.order, **self.list_page.query}

    def address(self, *more: str, **query: object) -> str:
        """Return the URL of a page with the same search and order."""
        return address("workspaces", self.workspace_id, "sinks", self.sink, *more, **self.chosen, **query)

    @property
    def chosen(self) -> dict[str, str]:
        """Return the query of pages with the same search and order, without what is so by default."""
        searched = self.searched if self.search and self.searched != "key" else ""
        return {"search": self.search, "in": searched, "sort": self.sort if self.sort != "key" else ""}


def entry_range_of(request: PageRequest) -> EntryRange:
    """Return the range that a page's URL names."""
    sort = request.query.get("sort", "key")
    return EntryRange(
        workspace_id=request.names["workspace"],
        sink=request.names["sink"],
        search=request.query.get("search", ""),
        searched=searched if (searched := request.query.get("in", "")) in SEARCHED else "key",
        sort=sort if sort in _SORTS else "key",
        list_page=PagePosition(take=PAGE_LENGTH, skip=request.number("skip"), cursor=request.query.get("cursor", "")),
    )


async def show_sink(request: PageRequest) -> PageView:
    """Show a range of a sink's entries."""
    entry_range = entry_range_of(request)
    workspace = await request.workspace()
    problem = ""
    try:
        found = await request.get(*entry_range.path, **entry_range.query)
    except PageRefused as refused:
        if refused.code != "too_many_to_sort":
            raise
        problem = (
            "This data sink has too many entries to sort them by the time of their update. They are sorted by key."
        )
        entry_range = dataclasses.replace(entry_range, sort="key", list_page=PagePosition(take=PAGE_LENGTH, skip=0))
        found = await request.get(*entry_range.path, **entry_range.query)
    named = await _named_exactly(request, entry_range, found)
    deadline = time.monotonic() + SEARCH_SECONDS
    while not named and not found.record["entries"] and found.next_cursor and time.monotonic() < deadline:
        further = dataclasses.replace(entry_range.list_page, cursor=found.next_cursor)
        entry_range = dataclasses.replace(entry_range, list_page=further)
        found = await request.get(*entry_range.path, **entry_range.query)
    sink = found.record
    here = {"skip": entry_range.list_page.skip or None, "cursor": entry_range.list_page.cursor or None}
    return page_view(
        "sink.html",
        title_of(sink["label"], workspace["label"]),
        SECTION,
        workspace=workspace,
        sink=sink,
        about={name: value for name, value in sink.items() if name != "entries"},
        icon=shown_icon(sink),
        problem=problem,
        imported={name: request.number(name) for name in IMPORTED} if set(IMPORTED) <= set(request.query) else None,
        may_write=request.may(DATA_SINKS_WRITE),
        may_push=request.may(DATA_SINKS_PUSH),
        search=entry_range.search,
        searched=entry_range.searched,
        searches=SEARCHED,
        sort=entry_range.sort,
        sorts={name: dataclasses.replace(entry_range, sort=name).address() for name in _SORTS},
        live=entry_range.address("live", **here, since=found.headers["etag"]),
        csv_here=entry_range.address("entries.csv", **here, take=PAGE_LENGTH),
        csv_all=entry_range.address("entries.csv"),
        named=named,
        **part_values(entry_range, found),
    )


async def _named_exactly(request: PageRequest, entry_range: EntryRange, found: ApiResponse) -> str:
    """Return the searched text if it is the key of an entry on a later page; else an empty text.

    A search reads a part of a large sink, but an entry is found by its key at once.
    """
    key = entry_range.search
    if not key or not found.next_cursor or any(entry["key"] == key for entry in found.record["entries"]):
        return ""
    response = await request.api.request("GET", *entry_range.path, key, counted=False)
    is_entry = response.status == 200 and isinstance((await parse_response(response)).value, dict)
    return key if is_entry else ""


def part_values(entry_range: EntryRange, found: ApiResponse) -> dict[str, Any]:
    """Return the values of the page's live part."""
    pager: Pager = entry_range.list_page.cursor_pager(
        len(found.record["entries"]),
        found.counted,
        found.next_cursor,
        *("workspaces", entry_range.workspace_id, "sinks", entry_range.sink),
        **entry_range.chosen,
    )
    return {
        "entries": found.record["entries"],
        "pager": pager,
        "stopped": _stopped(entry_range, found),
        "base": address("workspaces", entry_range.workspace_id, "sinks", entry_range.sink, "entries"),
    }


def _stopped(entry_range: EntryRange, found: ApiResponse) -> str:
    """Return the key at which a search stopped before its page was full; empty if it did not, or not in the order of keys."""
    if not found.next_cursor or len(found.record["entries"]) >= entry_range.list_page.take:
        return ""
    return Cursor.decoded(found.next_cursor).position[0] if _SORTS[entry_range.sort][0] == "key" else ""


async def show_entry(request: PageRequest) -> PageView:
    """Show one entry with its whole value."""
    entry_range = entry_range_of(request)
    workspace = await request.workspace()
    sink = await request.get(*entry_range.path, take="1")
    entry = await request.get(*entry_range.path, request.names["key"])
    return page_view(
        "entry.html",
        title_of(entry.record["key"], sink.record["label"], workspace["label"]),
        SECTION,
        workspace=workspace,
        sink=sink.record,
        entry=entry.record,
        may_write=request.may(DATA_SINKS_WRITE),
        may_push=request.may(DATA_SINKS_PUSH),
    )


async def csv(request: PageRequest) -> Response:
    """Return the entries in the API's CSV, unchanged; with ``take``, those of one page.

    Raises:
        PageRefused: the API responds with an error.
    """
    entry_range = entry_range_of(request)
    page = entry_range.list_page.query if "take" in request.query else {}
    response = await request.api.request(
        request.method, *entry_range.path, query={**entry_range.order, **page, "format": "csv"}
    )
    if response.status >= 400:
        raise api_error(response.status, response.body)
    kept = tuple((name, value) for name, value in response.headers if name == "Content-Type")
    name = f"{entry_range.sink}.csv" if entry_range.sink.isascii() else "entries.csv"
    saved = ("Content-Disposition", f'attachment; filename="{_plain(name)}"')
    return Response(status=200, headers=(*kept, saved), body=response.body, parts=response.parts)


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
