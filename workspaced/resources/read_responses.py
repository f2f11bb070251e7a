"""Responses of reads: a page of a list, and a record with its version."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from workspaced.http.operations import Call
from workspaced.http.pagination import Cursor, Page, read_page
from workspaced.http.responses import Headers, Response, etag, json_response
from workspaced.storage.port import ReadTransaction

T = TypeVar("T")
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


def read_list_page(call: Call, sortable: Collection[str]) -> Page:
    """Return the page of a list that the query asks for. Raises Invalid: a query parameter is out of its range."""
    return read_page(call.query, longest=call.settings.limits.page_length, sortable=frozenset(sortable))


def cursor_numbers(cursor: Cursor, count: int) -> list[int]:
    """Return the ``count`` numbers in a cursor. Raises Invalid: the cursor belongs to another list."""
    if len(cursor.position) != count or not all(_NUMBER.fullmatch(part) for part in cursor.position):
        raise Cursor.refused()
    return [int(part) for part in cursor.position]


def select_page(page: Page, items: Sequence[T], attributes: Mapping[str, str], *, tie: str = "id") -> Sequence[T]:
    """Return the items of a page, in the order that the page requests.

    ``items`` are in the default order. ``attributes`` has the attribute of each member that can sort the list. Items with equal
    values are sorted by the attribute ``tie``.
    """
    if page.sorted_by:
        attribute = attributes[page.sorted_by]
        items = sorted(items, key=lambda item: (getattr(item, attribute), getattr(item, tie)))
    return page.of(items[::-1] if page.descending else items)


async def list_response(call: Call, page: Page, find: Callable[[ReadTransaction], tuple[int, list[Any]]]) -> Response:
    """Respond with a page; ``find`` returns the length of the whole list, and the records of the page."""
    total, records = await call.store.read(find)
    return json_response(records, headers=list_headers(call, page, total))


def list_headers(call: Call, page: Page, total: int) -> Headers:
    """Return the headers of a page: the length of the whole list, and links to the neighbouring pages."""
    return page.headers(total=total, path=call.path, query=call.query)


def versioned_response(call: Call, record: object, version: int, *headers: tuple[str, str]) -> Response:
    """Respond with a record and its ETag; 304 if If-None-Match names this version."""
    if call.has_seen(version):
        return Response(status=304, headers=(etag(version), *headers))
    return json_response(record, headers=(etag(version), *headers))
