"""The entries of a sink: searched, sorted, some at a time; one of them; and as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from workspaced.http.responses import Response
from workspaced.ui.addresses import address
from workspaced.ui.pager import Pager, Turn
from workspaced.ui.renderer import PageView
from workspaced.ui.visit import Reply, Visit, refused
from workspaced.ui.workspaces import SECTION

AT_ONCE: Final = 100
_SORTS: Final[Mapping[str, tuple[str, str]]] = {
    "key": ("key", "ASC"),
    "key-last": ("key", "DESC"),
    "newest": ("updatedAt", "DESC"),
    "oldest": ("updatedAt", "ASC"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Which entries of which sink are looked at."""

    workspace_id: str
    sink: str
    search: str
    sort: str
    turn: Turn

    @property
    def path(self) -> tuple[str, ...]:
        """The sink's address in the API, below ``/v1``."""
        return ("workspace", self.workspace_id, "data-sink", self.sink)

    @property
    def order(self) -> dict[str, str]:
        """What the API is asked for, but for the place in the list."""
        by, order = _SORTS[self.sort]
        search = {"search": self.search} if self.search else {}
        return {**search, "sortedBy": by, "sortOrder": order}

    @property
    def query(self) -> dict[str, str]:
        """What the API is asked for."""
        return {**self.order, **self.turn.query}

    def address(self, *more: str, **query: object) -> str:
        """A page of the same stretch."""
        given = {"search": self.search, "sort": self.sort if self.sort != "key" else None, **query}
        return address("workspaces", self.workspace_id, "sinks", self.sink, *more, **given)


def stretch_of(visit: Visit) -> Stretch:
    """The stretch that a page's address names."""
    sort = visit.query.get("sort", "key")
    return Stretch(
        workspace_id=visit.names["workspace"],
        sink=visit.names["sink"],
        search=visit.query.get("search", ""),
        sort=sort if sort in _SORTS else "key",
        turn=Turn(take=AT_ONCE, skip=visit.number("skip"), cursor=visit.query.get("cursor", "")),
    )


async def show_sink(visit: Visit) -> PageView:
    """A stretch of a sink's entries."""
    stretch = stretch_of(visit)
    workspace = await visit.get("workspace", stretch.workspace_id)
    found = await visit.get(*stretch.path, **stretch.query)
    sink = found.record
    here = {"skip": stretch.turn.skip or None, "cursor": stretch.turn.cursor or None}
    return PageView(
        template="sink.html",
        title=sink["label"],
        section=SECTION,
        values={
            "workspace": workspace.record,
            "sink": sink,
            "search": stretch.search,
            "sort": stretch.sort,
            "sorts": {name: stretch.address(sort=name) for name in _SORTS},
            "live": stretch.address("live", **here, since=found.headers["etag"]),
            "csv_here": stretch.address("entries.csv", **here, take=AT_ONCE),
            "csv_all": stretch.address("entries.csv"),
            **part_values(stretch, found),
        },
    )


def part_values(stretch: Stretch, found: Reply) -> dict[str, Any]:
    """What the part of the page that lives is made of."""
    pager: Pager = stretch.turn.cursor_pager(
        len(found.record["entries"]),
        found.counted,
        found.next_cursor,
        *("workspaces", stretch.workspace_id, "sinks", stretch.sink),
        search=stretch.search,
        sort=stretch.sort if stretch.sort != "key" else None,
    )
    return {
        "entries": found.record["entries"],
        "pager": pager,
        "base": address("workspaces", stretch.workspace_id, "sinks", stretch.sink, "entries"),
    }


async def show_entry(visit: Visit) -> PageView:
    """One entry, whole."""
    stretch = stretch_of(visit)
    workspace = await visit.get("workspace", stretch.workspace_id)
    sink = await visit.get(*stretch.path, take="1")
    entry = await visit.get(*stretch.path, visit.names["key"])
    return PageView(
        template="entry.html",
        title=entry.record["key"],
        section=SECTION,
        values={"workspace": workspace.record, "sink": sink.record, "entry": entry.record},
    )


async def csv(visit: Visit) -> Response:
    """The entries as the API writes them in CSV, exactly; with ``take``, those of one page.

    Raises:
        Refused: the API says no.
    """
    stretch = stretch_of(visit)
    place = stretch.turn.query if "take" in visit.query else {}
    answer = await visit.api.request(visit.method, *stretch.path, query={**stretch.order, **place, "format": "csv"})
    if answer.status >= 400:
        raise refused(answer.status, answer.body)
    kept = tuple((name, value) for name, value in answer.headers if name == "Content-Type")
    name = f"{stretch.sink}.csv" if stretch.sink.isascii() else "entries.csv"
    saved = ("Content-Disposition", f'attachment; filename="{_plain(name)}"')
    return Response(status=200, headers=(*kept, saved), body=answer.body, parts=answer.parts)


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
