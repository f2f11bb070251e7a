"""The pages of a sink's entries: the searched, filtered and sorted list, a single entry, and the export as CSV."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from workspaced.http.internal_client import InternalClient
from workspaced.http.pagination import Cursor
from workspaced.http.responses import Response
from workspaced.security.permissions import DATA_SINKS_PUSH, DATA_SINKS_WRITE
from workspaced.ui.addresses import address
from workspaced.ui.fed_entries import consequence, warning_of_several
from workspaced.ui.page_request import ApiResponse, PageRefused, PageRequest, api_error, parse_response
from workspaced.ui.pager import PagePosition, Pager
from workspaced.ui.renderer import PageView, page_view, title_of
from workspaced.ui.workspaces import SEARCHED, SECTION, shown_icon

PAGE_LENGTH: Final = 100
EMPTY_SINK: Final = "This data sink has no entries yet. Add one, import a table, or let a daemon write to it."
SEARCH_SECONDS: float = 0.04
"""If a search finds nothing in a part of the entries, the server examines further parts for this time. Then it shows the page,
and a script on the page continues the search."""


@dataclass(frozen=True, slots=True)
class EntrySort:
    """An order of entries: the member and direction for the API, and the label on the page."""

    member: str
    direction: str
    label: str


_SORTS: Final[Mapping[str, EntrySort]] = {
    "key": EntrySort("key", "ASC", "Key, A first"),
    "key-last": EntrySort("key", "DESC", "Key, Z first"),
    "natural": EntrySort("naturalKey", "ASC", "Key, 2 before 10"),
    "natural-last": EntrySort("naturalKey", "DESC", "Key, 10 before 2"),
    "value": EntrySort("value", "ASC", "Value, smallest first"),
    "value-last": EntrySort("value", "DESC", "Value, largest first"),
    "type": EntrySort("dataType", "ASC", "Type, A first"),
    "type-last": EntrySort("dataType", "DESC", "Type, Z first"),
    "newest": EntrySort("updatedAt", "DESC", "Updated, newest first"),
    "oldest": EntrySort("updatedAt", "ASC", "Updated, oldest first"),
    "author": EntrySort("updatedBy", "ASC", "By, A first"),
    "author-last": EntrySort("updatedBy", "DESC", "By, Z first"),
}


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter of entries. ``name``: the parameter of the page. ``parameter``: the parameter of the API.

    ``label`` and ``kind``: the label and the type of the input field.
    """

    name: str
    parameter: str
    label: str
    kind: str = ""


_FILTERS: Final = (
    EntryFilter("prefix", "prefix", "Key begins with"),
    EntryFilter("type", "dataType", "Type"),
    EntryFilter("by", "updatedBy", "Updated by"),
    EntryFilter("from", "updatedFrom", "Updated from (UTC)", "datetime-local"),
    EntryFilter("until", "updatedUntil", "Updated until (UTC)", "datetime-local"),
    EntryFilter("least", "valueFrom", "Value from", "number"),
    EntryFilter("most", "valueUntil", "Value until", "number"),
)


_UNSORTED: Final[Mapping[str, str]] = {
    "too_many_to_sort": (
        "This data sink has too many entries for this order, so they are sorted by key. "
        "Filter by the beginning of the key to sort a part of them."
    ),
    "bad_sorted_by": "The results of a search of values are sorted by key.",
}
"""The sentences that say why entries are sorted by key and not in the requested order, by the code of the API's error."""


@dataclass(frozen=True, slots=True)
class _SortChoice:
    label: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRange:
    """The entries that a page shows: a search, filters, an order, and a page of the list.

    ``searched``: a key of `SEARCHED`. ``sort``: a key of `_SORTS`. ``filters``: the texts by `EntryFilter.name`.
    """

    workspace_id: str
    sink: str
    search: str
    searched: str
    sort: str
    filters: Mapping[str, str]
    list_page: PagePosition

    @property
    def path(self) -> tuple[str, ...]:
        """Return the segments of the sink's path in the API, below ``/v1``."""
        return ("workspace", self.workspace_id, "data-sink", self.sink)

    @property
    def order(self) -> dict[str, str]:
        """Return the query for the API, without the parameters of the page of the list."""
        sort = _SORTS[self.sort]
        search = {"search": self.search, "searchIn": self.searched} if self.search else {}
        filters = {one.parameter: _utc(one, self.filters[one.name]) for one in _FILTERS if one.name in self.filters}
        return {**search, **filters, "sortedBy": sort.member, "sortOrder": sort.direction}

    @property
    def query(self) -> dict[str, str]:
        """Return the whole query for the API."""
        return {**self.order, **self.list_page.query, "origin": "true"}

    def address(self, *more: str, **query: object) -> str:
        """Return the URL of a page with the same search, filters and order."""
        return address("workspaces", self.workspace_id, "sinks", self.sink, *more, **self.chosen, **query)

    @property
    def chosen(self) -> dict[str, str]:
        """Return the query of pages with the same search, filters and order. Default values are omitted."""
        searched = self.searched if self.search and self.searched != "key" else ""
        sort = self.sort if self.sort != "key" else ""
        return {"search": self.search, "in": searched, "sort": sort, **self.filters}


def _utc(one: EntryFilter, text: str) -> str:
    """Return the text of a filter as the API reads it. A time input gives no zone, and may give no seconds: both are added."""
    if one.kind != "datetime-local":
        return text
    return f"{text}{':00' if len(text) == len('2026-11-27T11:01') else ''}Z"


def entry_range_of(request: PageRequest) -> EntryRange:
    """Return the range of entries that a page's URL names."""
    sort = request.query.get("sort", "key")
    return EntryRange(
        workspace_id=request.names["workspace"],
        sink=request.names["sink"],
        search=request.query.get("search", ""),
        searched=searched if (searched := request.query.get("in", "")) in SEARCHED else "key",
        sort=sort if sort in _SORTS else "key",
        filters={one.name: text for one in _FILTERS if (text := request.query.get(one.name, "").strip())},
        list_page=PagePosition(take=PAGE_LENGTH, skip=request.number("skip"), cursor=request.query.get("cursor", "")),
    )


async def show_sink(request: PageRequest) -> PageView:
    """Show the range of a sink's entries that the URL names."""
    entry_range = entry_range_of(request)
    workspace = await request.workspace()
    problem = ""
    try:
        found = await request.get(*entry_range.path, **entry_range.query)
    except PageRefused as refused:
        if refused.code not in _UNSORTED:
            raise
        problem = _UNSORTED[refused.code]
        entry_range = dataclasses.replace(entry_range, sort="key", list_page=PagePosition(take=PAGE_LENGTH, skip=0))
        found = await request.get(*entry_range.path, **entry_range.query)
    named = await named_exactly(request.api, entry_range, found)
    deadline = time.monotonic() + SEARCH_SECONDS
    while not named and not found.record["entries"] and found.next_cursor and time.monotonic() < deadline:
        further = dataclasses.replace(entry_range.list_page, cursor=found.next_cursor)
        entry_range = dataclasses.replace(entry_range, list_page=further)
        found = await request.get(*entry_range.path, **entry_range.query)
    if _finds_no_key(entry_range, found, named):
        begin = PagePosition(take=PAGE_LENGTH, skip=0)
        entry_range = dataclasses.replace(entry_range, searched="value", sort="key", list_page=begin)
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
        may_write=request.may(DATA_SINKS_WRITE),
        may_push=request.may(DATA_SINKS_PUSH),
        search=entry_range.search,
        searched=entry_range.searched,
        searches=SEARCHED,
        filters=entry_range.filters,
        filter_fields=_FILTERS,
        cleared=dataclasses.replace(entry_range, search="", searched="key", filters={}).address(),
        sort=entry_range.sort,
        sorts={
            name: _SortChoice(one.label, dataclasses.replace(entry_range, sort=name).address())
            for name, one in _SORTS.items()
        },
        live=entry_range.address("live", **here, since=found.headers["etag"]),
        csv_here=entry_range.address("entries.csv", **here, take=PAGE_LENGTH),
        selection=entry_range.address("selection", **here),
        fed=consequence(sink),
        some_fed=warning_of_several(sink),
        csv_all=entry_range.address("entries.csv"),
        **part_values(entry_range, found, named),
    )


def _finds_no_key(entry_range: EntryRange, found: ApiResponse, named: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a search has examined all keys, and no key has the text. The values are then searched."""
    has_found = named or found.record["entries"] or found.next_cursor or entry_range.list_page.skip
    return bool(entry_range.search) and entry_range.searched == "key" and not has_found


async def named_exactly(api: InternalClient, entry_range: EntryRange, found: ApiResponse) -> list[Mapping[str, Any]]:
    """Return the entry with exactly the searched text as its key, if the first page does not have this entry.

    A search reads a large sink in parts. The entry with exactly this key is read directly, and is shown first.
    """
    key = entry_range.search
    if not key or entry_range.filters or not found.next_cursor or entry_range.list_page.cursor:
        return []
    if any(entry["key"] == key for entry in found.record["entries"]):
        return []
    response = await api.request("GET", *entry_range.path, key, query={"origin": "true"}, counted=False)
    entry = (await parse_response(response)).value if response.status == 200 else None
    return [entry] if isinstance(entry, dict) else []


def part_values(entry_range: EntryRange, found: ApiResponse, named: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the template values of the part of the page that is updated live. ``named``: see `named_exactly`."""
    pager: Pager = entry_range.list_page.cursor_pager(
        len(found.record["entries"]),
        found.counted,
        found.next_cursor,
        *("workspaces", entry_range.workspace_id, "sinks", entry_range.sink),
        **entry_range.chosen,
    )
    is_part = entry_range.search or entry_range.filters
    return {
        "entries": [*named, *found.record["entries"]],
        "named": len(named),
        "pager": pager,
        "none_found": "No entry matches." if is_part else EMPTY_SINK,
        "stopped": _stopped(entry_range, found),
        "base": address("workspaces", entry_range.workspace_id, "sinks", entry_range.sink, "entries"),
    }


def _stopped(entry_range: EntryRange, found: ApiResponse) -> str:
    """Return the key at which a search in key order stopped before the page was full; empty in all other cases."""
    if not found.next_cursor or len(found.record["entries"]) >= entry_range.list_page.take:
        return ""
    return Cursor.decoded(found.next_cursor).position[0] if _SORTS[entry_range.sort].member == "key" else ""


async def show_entry(request: PageRequest) -> PageView:
    """Show one entry with its whole value."""
    entry_range = entry_range_of(request)
    workspace = await request.workspace()
    sink = await request.get(*entry_range.path, take="1")
    entry = await request.get(*entry_range.path, request.names["key"], origin="true")
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
    """Return the API's CSV of the entries, unchanged. With ``take`` in the query, the CSV has only the entries of one page.

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
