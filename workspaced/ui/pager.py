"""Paging: the query for the API, and the links below a list. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workspaced.ui.addresses import address


@dataclass(frozen=True, slots=True, kw_only=True)
class Pager:
    """The range of shown records, counted from 1, and the URLs of the neighbouring pages; empty: there is none.

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
        """Return the links of a page at ``/ui/<segments>``; ``query`` has further parameters."""
        earlier = max(self.skip - self.take, 0)
        return Pager(
            first=min(self.skip + 1, total),
            last=min(self.skip + self.take, total),
            total=total,
            previous=address(*segments, **query, skip=earlier or None) if self.skip else "",
            next=address(*segments, **query, skip=self.skip + self.take) if self.skip + self.take < total else "",
        )

    def cursor_pager(self, shown: int, total: int | None, following: str, *segments: str, **query: object) -> Pager:
        """Return the links of a list with cursors; the next page has the cursor ``following``; empty: there is none.

        A list that was not counted has no way back but to its beginning.
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
