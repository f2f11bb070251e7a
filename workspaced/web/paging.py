"""take, skip, sortOrder and sortedBy on lists (contract, G19)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, urlencode

from workspaced.problems import Invalid
from workspaced.web.answers import Headers

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A stretch of a list. ``take`` None: everything, as the document has it. ``sorted_by`` empty: the default order."""

    take: int | None
    skip: int
    descending: bool
    sorted_by: str

    @property
    def paged(self) -> bool:
        """Whether the caller asked for a stretch."""
        return self.take is not None or self.skip > 0

    def of(self, records: Sequence[T]) -> Sequence[T]:
        """The stretch of a list that is in its order already."""
        return records[self.skip : None if self.take is None else self.skip + self.take]

    def headers(self, *, total: int, path: str, query: Mapping[str, str]) -> Headers:
        """X-Total-Count and, where paged, Link to the neighbours."""
        count = ("X-Total-Count", str(total))
        if not self.paged:
            return (count,)
        take = self.take if self.take is not None else max(total - self.skip, 1)
        links = []
        if self.skip + take < total:
            links.append(_link(path, query, take, self.skip + take, "next"))
        if self.skip > 0:
            links.append(_link(path, query, min(take, self.skip), max(self.skip - take, 0), "prev"))
        return (count, ("Link", ", ".join(links))) if links else (count,)


def read_page(query: Mapping[str, str], *, longest: int, sortable: frozenset[str]) -> Page:
    """What the query asks for.

    Raises:
        Invalid: a value is out of its range; nothing is clamped, since that would skip rows silently.
    """
    take = _number(query, "take", lowest=1, highest=longest)
    skip = _number(query, "skip", lowest=0, highest=2**53)
    order = query.get("sortOrder", "ASC").upper()
    if order not in {"ASC", "DESC"}:
        raise Invalid("bad_sort_order", "sortOrder must be ASC or DESC.")
    sorted_by = query.get("sortedBy", "")
    if sorted_by and sorted_by not in sortable:
        raise Invalid("bad_sorted_by", f"sortedBy must be one of {', '.join(sorted(sortable))}.")
    return Page(take=take, skip=skip or 0, descending=order == "DESC", sorted_by=sorted_by)


def _number(query: Mapping[str, str], name: str, *, lowest: int, highest: int) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 18 and lowest <= int(text) <= highest):
        raise Invalid(f"bad_{name}", f"{name} must be a whole number from {lowest} to {highest}.")
    return int(text)


def _link(path: str, query: Mapping[str, str], take: int, skip: int, relation: str) -> str:
    target = urlencode({**query, "take": take, "skip": skip}, quote_via=quote)
    return f'<{path}?{target}>; rel="{relation}"'
