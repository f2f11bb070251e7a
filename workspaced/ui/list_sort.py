"""The order of a list that the user chooses by the heads of its columns. Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from workspaced.ui.page_request import PageRequest

_NEWEST_FIRST: Final = "changed"
_FALLING: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSort:
    """The order of a list. ``columns``: the API's members by the names in URLs; the first one is that of the default order."""

    columns: Mapping[str, str]
    column: str
    is_falling: bool

    @property
    def query(self) -> dict[str, str]:
        """Return the order as query parameters of the API's lists."""
        return {"sortedBy": self.columns[self.column], "sortOrder": "DESC" if self.is_falling else "ASC"}

    @property
    def chosen(self) -> str:
        """Return the parameter of the page's URL; empty for the default order."""
        return (
            ""
            if self.column == next(iter(self.columns)) and not self.is_falling
            else self._named(is_falling=self.is_falling)
        )

    def state(self, column: str) -> str:
        """Return how the list is sorted by a column, as ARIA names it; empty if it is not."""
        return "" if column != self.column else "descending" if self.is_falling else "ascending"

    def following(self, column: str) -> str:
        """Return the parameter of the order that a click on the head of a column chooses."""
        if column == self.column:
            return self._named(is_falling=not self.is_falling)
        return f"{_FALLING}{column}" if column == _NEWEST_FIRST else column

    def _named(self, *, is_falling: bool) -> str:
        return f"{_FALLING if is_falling else ''}{self.column}"


def sort_of(request: PageRequest, **columns: str) -> ListSort:
    """Return the order that a page's URL names; that of the first column if it names none of them."""
    asked = request.query.get("sort", "")
    column = asked.removeprefix(_FALLING)
    if column not in columns:
        return ListSort(columns=columns, column=next(iter(columns)), is_falling=False)
    return ListSort(columns=columns, column=column, is_falling=asked.startswith(_FALLING))
