"""The entries of a sink, searched, sorted and in pages; one entry; and the entries as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import address
from workspaced.ui.page_request import ApiResponse, PageRequest, api_error
from workspaced.ui.pager import PagePosition, Pager
from workspaced.ui.renderer import PageView, page_view
from workspaced.ui.workspaces import SECTION

PAGE_LENGTH: Final = 100
_SORTS: Final[Mapping[str, tuple[str, str]]] = {
    "key": ("key", "ASC"),
    "key-last": ("key", "DESC"),
    "newest": ("updatedAt", "DESC"),
    "oldest": ("updatedAt", "ASC"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRange:
    """A part of a sink's entries: a search, an order, and a page."""

    workspace_id: str
    sink: str
    search: str
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
        search = {"search": self.search} if self.search else {}
        return {**search, "sortedBy": by, "sortOrder": order}

    @property
    def query(self) -> dict[str, str]:
        """Return the API's query."""
        return {**self.order, **self.list_page.query}

    def address(self, *more: str, **query: object) -> str:
        """Return the URL of a page with the same search and order."""
        given = {"search": self.search, "sort": self.sort if self.sort != "key" else None, **query}
        return address("workspaces", self.workspace_id, "sinks", self.sink, *more, **given)


def entry_range_of(request: PageRequest) -> EntryRange:
    """Return the range that a page's URL names."""
    sort = request.query.get("sort", "key")
    return EntryRange(
        workspace_id=request.names["workspace"],
        sink=request.names["sink"],
        search=request.query.get("search", ""),
        sort=sort if sort in _SORTS else "key",
        list_page=PagePosition(take=PAGE_LENGTH, skip=request.number("skip"), cursor=request.query.get("cursor", "")),
    )


async def show_sink(request: PageRequest) -> PageView:
    """Show a range of a sink's entries."""
    entry_range = entry_range_of(request)
    workspace = await request.workspace()
    found = await request.get(*entry_range.path, **entry_range.query)
    sink = found.record
    here = {"skip": entry_range.list_page.skip or None, "cursor": entry_range.list_page.cursor or None}
    return page_view(
        "sink.html",
        sink["label"],
        SECTION,
        workspace=workspace,
        sink=sink,
        search=entry_range.search,
        sort=entry_range.sort,
        sorts={name: entry_range.address(sort=name) for name in _SORTS},
        live=entry_range.address("live", **here, since=found.headers["etag"]),
        csv_here=entry_range.address("entries.csv", **here, take=PAGE_LENGTH),
        csv_all=entry_range.address("entries.csv"),
        **part_values(entry_range, found),
    )


def part_values(entry_range: EntryRange, found: ApiResponse) -> dict[str, Any]:
    """Return the values of the page's live part."""
    pager: Pager = entry_range.list_page.cursor_pager(
        len(found.record["entries"]),
        found.counted,
        found.next_cursor,
        *("workspaces", entry_range.workspace_id, "sinks", entry_range.sink),
        search=entry_range.search,
        sort=entry_range.sort if entry_range.sort != "key" else None,
    )
    return {
        "entries": found.record["entries"],
        "pager": pager,
        "base": address("workspaces", entry_range.workspace_id, "sinks", entry_range.sink, "entries"),
    }


async def show_entry(request: PageRequest) -> PageView:
    """Show one entry with its whole value."""
    entry_range = entry_range_of(request)
    workspace = await request.workspace()
    sink = await request.get(*entry_range.path, take="1")
    entry = await request.get(*entry_range.path, request.names["key"])
    return page_view(
        "entry.html",
        entry.record["key"],
        SECTION,
        workspace=workspace,
        sink=sink.record,
        entry=entry.record,
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
