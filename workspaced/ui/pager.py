"""The pages and the order of a list: the query for the API, and the links. Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workspaced.ui.addresses import address
from workspaced.ui.page_request import PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Pager:
    """The range of shown records, counted from 1, and the URLs of the pages before and after (empty: no such page).

    ``total`` None: the records were not counted.
    """

    first: int
    last: int
    total: int | None
    previous: str
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePosition:
    """One page of a list: ``take`` records after the first ``skip``, or after the API's ``cursor`` if there is one."""

    take: int
    skip: int
    cursor: str = ""

    @property
    def query(self) -> Mapping[str, str]:
        """Return the page as query parameters of the API's lists."""
        if self.cursor:
            return {"take": str(self.take), "cursor": self.cursor}
        return {"take": str(self.take), "skip": str(self.skip)}

    def pager(self, total: int, *segments: str, **query: object) -> Pager:
        """Return the links of a list at ``/ui/<segments>``. ``query`` has further parameters of its URL."""
        earlier = max(self.skip - self.take, 0)
        return Pager(
            first=min(self.skip + 1, total),
            last=min(self.skip + self.take, total),
            total=total,
            previous=address(*segments, **query, skip=earlier or None) if self.skip else "",
            next=address(*segments, **query, skip=self.skip + self.take) if self.skip + self.take < total else "",
        )

    def cursor_pager(self, shown: int, total: int | None, following: str, *segments: str, **query: object) -> Pager:
        """Return the links of a list with cursors. ``following`` is the cursor of the next page; empty: this is the last page.

        If the list was not counted (``total`` None), the link to the previous page leads to the first page.
        """
        earlier = max(self.skip - self.take, 0) if total is not None else 0
        forward = {"cursor": following, "skip": self.skip + shown or None}
        return Pager(
            first=self.skip + 1 if shown else 0,
            last=self.skip + shown if shown else 0,
            total=total,
            previous=address(*segments, **query, skip=earlier or None) if self.skip or self.cursor else "",
            next=address(*segments, **query, **forward) if following else "",
        )


_NEWEST_FIRST: Final = "changed"
_FALLING: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSort:
    """The order of a list. ``columns``: the members of the API, by their names in URLs; the first column is the default."""

    columns: Mapping[str, str]
    column: str
    is_falling: bool

    @property
    def query(self) -> dict[str, str]:
        """Return the order as query parameters of the API's lists."""
        return {"sortedBy": self.columns[self.column], "sortOrder": "DESC" if self.is_falling else "ASC"}

    @property
    def chosen(self) -> str:
        """Return the order as the parameter ``sort`` of the page's URL; empty for the default order."""
        return (
            ""
            if self.column == next(iter(self.columns)) and not self.is_falling
            else self._named(is_falling=self.is_falling)
        )

    def state(self, column: str) -> str:
        """Return the ARIA name of the order by a column; empty if the list is not sorted by this column."""
        return "" if column != self.column else "descending" if self.is_falling else "ascending"

    def following(self, column: str) -> str:
        """Return the parameter ``sort`` of the order that a click on the head of a column chooses."""
        if column == self.column:
            return self._named(is_falling=not self.is_falling)
        return f"{_FALLING}{column}" if column == _NEWEST_FIRST else column

    def _named(self, *, is_falling: bool) -> str:
        return f"{_FALLING if is_falling else ''}{self.column}"


def sort_of(request: PageRequest, **columns: str) -> ListSort:
    """Return the order that the page's URL names; the default is the first column, ascending."""
    asked = request.query.get("sort", "")
    column = asked.removeprefix(_FALLING)
    if column not in columns:
        return ListSort(columns=columns, column=next(iter(columns)), is_falling=False)
    return ListSort(columns=columns, column=column, is_falling=asked.startswith(_FALLING))
