"""Pages of lists: take, skip, cursor, sortOrder and sortedBy (contract G19, G27, G28)."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from workspaced.core.problems import Invalid
from workspaced.http.responses import Headers

T = TypeVar("T")

CURSOR_LENGTH: Final = 4_096


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The record after which a page begins. ``order`` names the member and the direction that the list is sorted by.

    A cursor holds the record's position in the order, not its index. So pages neither miss nor repeat records while other
    records are added and removed.
    """

    order: str
    position: tuple[str, ...]

    def encoded(self) -> str:
        """Return the opaque text for the query parameter."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def decoded(cls, text: str) -> Self:
        """Return the cursor of an opaque text.

        Raises:
            Invalid: this service did not make the text.
        """
        try:
            if len(text) > CURSOR_LENGTH:
                raise cls.refused()
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            found = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=cls)
        except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
            raise cls.refused() from None
        if any("\0" in part for part in found.position):
            raise cls.refused()
        return found

    @staticmethod
    def refused() -> Invalid:
        """Return the error for a cursor that does not fit the list."""
        return Invalid("bad_cursor", "cursor must come from a Link of this list, with the same sortedBy and sortOrder.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list. ``take`` None: the whole list. ``sorted_by`` empty: the default order."""

    take: int | None
    skip: int
    descending: bool
    sorted_by: str
    cursor: Cursor | None = None

    @property
    def paged(self) -> bool:
        """Return whether the caller requested a part."""
        return self.take is not None or self.skip > 0 or self.cursor is not None

    @property
    def order(self) -> str:
        """Return the name of the order in cursors."""
        return f"{self.sorted_by} {'DESC' if self.descending else 'ASC'}"

    def of(self, records: Sequence[T]) -> Sequence[T]:
        """Return this page of a list that is sorted already."""
        return records[self.skip : None if self.take is None else self.skip + self.take]

    def cursor_after(self, *position: str) -> str:
        """Return the cursor of the page after a record at this position."""
        return Cursor(self.order, position).encoded()

    def headers(self, *, total: int, path: str, query: Mapping[str, str]) -> Headers:
        """Return X-Total-Count and, for a part, the Link to the neighbouring pages by ``skip``."""
        count = ("X-Total-Count", str(total))
        if not self.paged:
            return (count,)
        take = self.take if self.take is not None else max(total - self.skip, 1)
        links = []
        if self.skip + take < total:
            links.append(_link(path, query, {"take": take, "skip": self.skip + take}, "next"))
        if self.skip > 0:
            links.append(_link(path, query, {"take": min(take, self.skip), "skip": max(self.skip - take, 0)}, "prev"))
        return (count, ("Link", ", ".join(links))) if links else (count,)

    def cursor_headers(self, *, total: int | None, following: str, path: str, query: Mapping[str, str]) -> Headers:
        """Return X-Total-Count if known, and the Link to the page at the cursor ``following``; empty: no page follows."""
        headers: Headers = () if total is None else (("X-Total-Count", str(total)),)
        links = []
        if following:
            rest = {name: text for name, text in query.items() if name != "skip"}
            links.append(_link(path, rest, {"cursor": following}, "next"))
        if self.skip > 0 and self.take is not None:
            before = {"take": min(self.take, self.skip), "skip": max(self.skip - self.take, 0)}
            links.append(_link(path, query, before, "prev"))
        return (*headers, ("Link", ", ".join(links))) if links else headers


def read_page(query: Mapping[str, str], *, longest: int, sortable: frozenset[str], walk: int = 0) -> Page:
    """Return the page that the query requests. ``walk``: the maximum of ``skip``; 0: no maximum, and no cursors.

    Raises:
        Invalid: a value is out of range; values are not clamped, because clamping would silently skip rows.
    """
    take = _number(query, "take", lowest=1, highest=longest)
    skip = _number(query, "skip", lowest=0, highest=2**53)
    order = query.get("sortOrder", "ASC").upper()
    if order not in {"ASC", "DESC"}:
        raise Invalid("bad_sort_order", "sortOrder must be ASC or DESC.")
    sorted_by = query.get("sortedBy", "")
    if sorted_by and sorted_by not in sortable:
        raise Invalid("bad_sorted_by", f"sortedBy must be one of {', '.join(sorted(sortable))}.")
    page = Page(take=take, skip=skip or 0, descending=order == "DESC", sorted_by=sorted_by)
    if walk and page.skip > walk:
        raise Invalid("bad_skip", f"skip may be at most {walk}. Follow the Link rel=next to read further.")
    if not walk or not query.get("cursor"):
        return page
    if page.skip:
        raise Invalid("bad_skip", "A page has a cursor or a skip, not both.")
    cursor = Cursor.decoded(query["cursor"])
    if cursor.order != page.order:
        raise Cursor.refused()
    return dataclasses.replace(page, cursor=cursor)


def _number(query: Mapping[str, str], name: str, *, lowest: int, highest: int) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 18 and lowest <= int(text) <= highest):
        raise Invalid(f"bad_{name}", f"{name} must be a whole number from {lowest} to {highest}.")
    return int(text)


def _link(path: str, query: Mapping[str, str], changes: Mapping[str, object], relation: str) -> str:
    target = urlencode({**query, **changes}, quote_via=quote)
    return f'<{path}?{target}>; rel="{relation}"'
