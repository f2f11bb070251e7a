"""Lists asked for page by page: which request comes next, and what of its answer is new. No I/O.

A service that follows the contract tells with each page how many there are (X-Total-Count) and whether there are more (Link).
One that knows only the document takes no ``take`` but for webhooks, and answers everything at once.

Where the Link to the next page has a cursor, the next request has it, too, and no record is missed. Other pages are counted
from the start of the list, so records that are added or removed meanwhile shift the others: a record that was given is not
given again with the next page, but one can be missed while others before it are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

from ingestd.client.request import Request

T = TypeVar("T")

_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """A part of a list. ``more``: what the service says of there being more; None where it says nothing.

    ``cursor``: that of the next page; empty where the service gives none.
    """

    records: tuple[T, ...]
    more: bool | None
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """A list to be read. ``whole`` asks for all of it at once; ``documented``: the document itself has it in pages."""

    whole: Request[tuple[T, ...]]
    page_length: int
    identity: Callable[[T], str]
    documented: bool = False


class Pages(Generic[T]):
    """Ask for `request`, hand its page to `fresh`, until there is no request any more."""

    def __init__(self, listing: Listing[T]) -> None:
        if listing.page_length < 1:
            raise ValueError("page_length must be at least 1.")
        self._listing = listing
        self._skip = 0
        self._cursor = ""
        self._given: frozenset[str] = frozenset()
        self.request: Request[Page[T]] | None = self._request({"skip": "0"})

    def fresh(self, page: Page[T]) -> list[T]:
        """What was not in the page before."""
        identity = self._listing.identity
        ids = [identity(record) for record in page.records]
        new = [record for record, name in zip(page.records, ids, strict=True) if name not in self._given]
        self._given = frozenset(ids)
        self._skip += len(ids)
        self.request = self._following(page, new=bool(new))
        return new

    def _following(self, page: Page[T], *, new: bool) -> Request[Page[T]] | None:
        if page.cursor and page.cursor != self._cursor:
            self._cursor = page.cursor
            return self._request({"cursor": page.cursor})
        # A page without anything new comes from a service that does not know `skip`: it would never end.
        return self._request({"skip": str(self._skip)}) if new and self._goes_on(page) else None

    def _goes_on(self, page: Page[T]) -> bool:
        if page.more is not None:
            return page.more
        return self._listing.documented and len(page.records) == self._listing.page_length

    def _request(self, place: Mapping[str, str]) -> Request[Page[T]]:
        whole, take, skip = self._listing.whole, self._listing.page_length, self._skip
        read = whole.read

        def read_page(body: bytes, headers: Mapping[str, str]) -> Page[T]:
            records = read(body, headers)
            return Page(records=records, more=_more(headers, skip + len(records)), cursor=_cursor(headers))

        return Request(
            operation=whole.operation,
            read=read_page,
            names=whole.names,
            query={**(whole.query or {}), "take": str(take), **place},
            headers=whole.headers,
        )


def _more(headers: Mapping[str, str], reached: int) -> bool | None:
    if link := headers.get("Link"):
        return bool(_NEXT.search(link))
    total = headers.get("X-Total-Count", "")
    return reached < int(total) if total.isascii() and total.isdigit() else None


def _cursor(headers: Mapping[str, str]) -> str:
    match = _NEXT.search(headers.get("Link", ""))
    values = parse_qs(urlsplit(match[1]).query).get("cursor", []) if match else []
    return values[0] if values else ""
