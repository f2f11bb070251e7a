"""Lists that are read page by page: which request comes next, and which of its records are new. No I/O.

A service that follows the contract reports with each page how many records exist (X-Total-Count), and whether another page
follows (Link). A service that follows the interface document alone has pages for webhooks only, and returns other lists
whole.

If the Link to the next page has a cursor, the next request has it, too, and no record is missed. Other pages are counted
from the start of the list, so added or removed records shift them. A record is never returned twice in two successive
pages, but one can be missed if records before it are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from ingestd.client.request import Request

T = TypeVar("T")

_NEXT = re.compile(r'<([^<>]*)>\s*;[^,<]*\brel="?next"?')


class ListPage(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A part of a list. ``more``: whether another page follows; None if the service does not report it.

    ``cursor``: of the next page, or empty.
    """

    records: tuple[T, ...]
    more: bool | None
    cursor: str = ""


class PagedList(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A list to be read. ``whole`` requests all of it; ``documented``: the interface document has pages for it.

    ``identity`` returns the id of a record.
    """

    whole: Request[tuple[T, ...]]
    page_length: int
    identity: Callable[[T], str]
    documented: bool = False


class PageReader(Generic[T]):
    """Send `request` and pass its page to `new_records`, until `request` is None."""

    def __init__(self, listing: PagedList[T]) -> None:
        if listing.page_length < 1:
            raise ValueError("page_length must be at least 1.")
        self._listing = listing
        self._skip = 0
        self._cursor = ""
        self._seen: frozenset[str] = frozenset()
        self.request: Request[ListPage[T]] | None = self._request({"skip": "0"})

    def new_records(self, page: ListPage[T]) -> list[T]:
        """Return the records that the page before did not have, and set the next request."""
        identity = self._listing.identity
        ids = [identity(record) for record in page.records]
        new = [record for record, name in zip(page.records, ids, strict=True) if name not in self._seen]
        self._seen = frozenset(ids)
        self._skip += len(ids)
        self.request = self._next_request(page, new=bool(new))
        return new

    def _next_request(self, page: ListPage[T], *, new: bool) -> Request[ListPage[T]] | None:
        if page.cursor and page.cursor != self._cursor:
            self._cursor = page.cursor
            return self._request({"cursor": page.cursor})
        # A service that ignores `skip` returns the same page forever, so a page without new records is the last.
        return self._request({"skip": str(self._skip)}) if new and self._has_more(page) else None

    def _has_more(self, page: ListPage[T]) -> bool:
        if page.more is not None:
            return page.more
        return self._listing.documented and len(page.records) == self._listing.page_length

    def _request(self, position: Mapping[str, str]) -> Request[ListPage[T]]:
        whole, take, skip = self._listing.whole, self._listing.page_length, self._skip
        read = whole.read

        def read_page(body: bytes, headers: Mapping[str, str]) -> ListPage[T]:
            records = read(body, headers)
            return ListPage(records=records, more=_more(headers, skip + len(records)), cursor=_cursor(headers))

        query = {**(whole.query or {}), "take": str(take), **position}
        return Request(operation=whole.operation, read=read_page, path=whole.path, query=query, headers=whole.headers)


def _more(headers: Mapping[str, str], reached: int) -> bool | None:
    if link := headers.get("Link"):
        return bool(_NEXT.search(link))
    total = headers.get("X-Total-Count", "")
    return reached < int(total) if total.isascii() and total.isdigit() else None


def _cursor(headers: Mapping[str, str]) -> str:
    match = _NEXT.search(headers.get("Link", ""))
    values = parse_qs(urlsplit(match[1]).query).get("cursor", []) if match else []
    return values[0] if values else ""
