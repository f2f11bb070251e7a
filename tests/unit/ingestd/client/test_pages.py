"""Paged lists, from services that announce their length or a cursor, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.client import operations
from ingestd.client.pages import PagedList, PageReader
from ingestd.client.request import Request

Handler = Callable[[int, int], tuple[Sequence[str], dict[str, str]]]


def listing(page_length: int, *, documented: bool = False) -> PagedList[str]:
    whole = Request(
        operation=operations.LIST_WEBHOOKS,
        read=lambda body, _: tuple(body.decode().split()),
        query={"search": "x"},
    )
    return PagedList(whole=whole, page_length=page_length, identity=str, documented=documented)


def read(pages: PageReader[str], handler: Handler) -> tuple[list[str], int]:
    """Return all records and the number of requests."""
    found: list[str] = []
    requests = 0
    while pages.request is not None:
        query = pages.request.query or {}
        assert query["search"] == "x"
        records, headers = handler(int(query["take"]), int(query["skip"]))
        found += pages.new_records(pages.request.read(" ".join(records).encode(), headers))
        requests += 1
        assert requests < 1_000
    return found, requests


def part(records: Sequence[str], take: int, skip: int) -> Sequence[str]:
    return records[skip : skip + take]


NAMES = st.integers(0, 30).map(lambda count: [f"r{number}" for number in range(count)])


@given(records=NAMES, page_length=st.integers(1, 12), announced=st.sampled_from(["total", "link", "nothing"]))
def test_every_record_is_returned_once_and_in_order(records: list[str], page_length: int, announced: str) -> None:
    def handler(take: int, skip: int) -> tuple[Sequence[str], dict[str, str]]:
        link = '</x?take=1&skip=2>; rel="next"' if skip + take < len(records) else '</x?skip=0>; rel="prev"'
        headers = {"total": {"X-Total-Count": str(len(records))}, "link": {"Link": link}, "nothing": {}}
        return part(records, take, skip), headers[announced]

    found, requests = read(PageReader(listing(page_length, documented=True)), handler)
    assert found == records
    assert requests <= len(records) // page_length + 1


@given(records=NAMES, page_length=st.integers(1, 12), documented=st.booleans())
def test_listing_ends_if_the_service_ignores_the_page(
    records: list[str], page_length: int, *, documented: bool
) -> None:
    found, requests = read(PageReader(listing(page_length, documented=documented)), lambda _, __: (records, {}))
    assert found == records
    assert requests <= 2


def test_a_record_that_moves_to_the_next_page_is_returned_once() -> None:
    records = ["e", "d", "c", "b", "a"]

    def handler(take: int, skip: int) -> tuple[Sequence[str], dict[str, str]]:
        found = part(records, take, skip)
        if skip == 0:
            records.insert(0, "f")
        return found, {"X-Total-Count": str(len(records))}

    assert read(PageReader(listing(2)), handler)[0] == ["e", "d", "c", "b", "a"]


def test_paging_by_cursor_misses_no_record_while_others_are_removed() -> None:
    records = [f"r{number:02d}" for number in range(20)]
    pages, found = PageReader(listing(3)), list[str]()
    while pages.request is not None:
        query = pages.request.query or {}
        assert ("cursor" in query) != ("skip" in query)
        following = [name for name in records if name > query.get("cursor", "")]
        link = {"Link": f'</x?take=3&cursor={following[2]}&search=x>; rel="next"'} if len(following) > 3 else {}
        found += pages.new_records(pages.request.read(" ".join(following[:3]).encode(), link))
        records.pop(0)
    assert found == [f"r{number:02d}" for number in range(20)]


def test_an_empty_page_with_a_cursor_is_followed() -> None:
    responses: list[tuple[str, dict[str, str]]] = [
        ("", {"Link": '</x?cursor=a>; rel="next"'}),
        ("one", {"Link": '</x?cursor=b>; rel="next", </x?skip=0>; rel="prev"'}),
        ("two", {}),
    ]
    pages, found = PageReader(listing(3)), list[str]()
    for body, headers in responses:
        assert pages.request is not None
        found += pages.new_records(pages.request.read(body.encode(), headers))
    assert (found, pages.request) == (["one", "two"], None)


def test_a_page_size_below_one_is_rejected() -> None:
    with pytest.raises(ValueError, match="page_length"):
        PageReader(listing(0))
