"""Pages that mislead: records that move between them, small ones, repeated tokens, other services, and totals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connectors.http import HttpConnector
from ingestd.sdk import Batch, Partition, SourceBroken
from tests.support.rest_service import Asked, RestService, Sent

PARTITION = Partition(name="parts")
OFFSET = {"type": "offset", "param": "offset", "size_param": "limit", "size": 100}
Connect = Callable[..., HttpConnector]


def ids(batches: list[Batch]) -> list[str]:
    return [row for batch in batches for row in batch.records["id"].to_list()]


def read(connector: HttpConnector, cursor: Any = None) -> list[Batch]:
    return list(connector.read(PARTITION, cursor))


def at_request(service: RestService, number: int, change: Callable[[], object]) -> None:
    """Make ``change`` before the request with this number, counted from 1."""

    def before(_: Asked) -> None:
        if len(service.asked) == number:
            change()

    service.before = before


@pytest.mark.parametrize("page", [OFFSET, {"type": "page", "param": "page"}])
def test_pages_smaller_than_requested_are_read_to_the_end(service: RestService, connect: Connect, page: Any) -> None:
    service.paging = page["type"]
    assert ids(read(connect(page=page))) == [str(number) for number in range(10)]


def test_a_record_that_moves_to_a_page_already_read_is_not_removed(service: RestService, connect: Connect) -> None:
    """Removing record 0 moves record 3 from the second page to the first one."""
    service.paging = "offset"
    connector = connect(page=OFFSET, deletes="remove")
    at_request(service, 2, lambda: service.records.pop(0))
    batches = read(connector)
    assert "3" not in ids(batches)
    assert all(batch.partial for batch in batches)
    assert "moved between its pages during the reading" in next(iter(connector.notices()))
    again = read(connector, batches[-1].cursor)
    assert ids(again) == [str(number) for number in range(1, 10)]
    assert not any(batch.partial for batch in again)
    assert not list(connector.notices())


def test_two_readings_with_the_same_keys_are_believed(service: RestService, connect: Connect) -> None:
    service.paging = "offset"
    batches = read(connect(page=OFFSET, deletes="remove"))
    assert not any(batch.partial for batch in batches)
    assert len(service.asked) == 2 * 5


def test_a_total_that_every_page_confirms_saves_the_second_reading(service: RestService, connect: Connect) -> None:
    service.paging = "offset"
    service.counts = True
    batches = read(connect(page=OFFSET, deletes="remove", total="total"))
    assert not any(batch.partial for batch in batches)
    assert len(service.asked) == 5


def test_a_total_that_changes_between_pages_is_not_believed(service: RestService, connect: Connect) -> None:
    service.paging = "offset"
    service.counts = True
    connector = connect(page=OFFSET, deletes="remove", total="total")
    at_request(service, 3, lambda: service.records.insert(0, {"id": 99, "mass": "1"}))
    assert all(batch.partial for batch in read(connector))


@pytest.mark.parametrize("paging", ["single", "offset"])
def test_fewer_records_than_the_stated_total_remove_nothing(
    service: RestService, connect: Connect, paging: str
) -> None:
    """A service limits its responses to four records, and states that it has ten."""
    service.before = lambda asked: Sent(
        {"data": [] if int(asked.params.get("offset", 0)) >= 4 else service.records[:4], "total": 10}
    )
    page = OFFSET if paging == "offset" else "single"
    connector = connect(page=page, deletes="remove", total="total")
    batches = read(connector)
    assert ids(batches) == ["0", "1", "2", "3"]
    assert all(batch.partial for batch in batches)
    [sentence] = connector.notices()
    assert sentence.endswith(
        "states 10 as the number of all records, but sent 4 records, so no entry was removed. Check page, params and total."
    )
    assert len(service.asked) == (4 if paging == "offset" else 2)


def test_fewer_records_than_the_stated_total_are_reported_if_nothing_is_removed(
    service: RestService, connect: Connect
) -> None:
    service.before = lambda _: Sent({"data": service.records[:4], "total": 10}, headers={"ETag": '"a"'})
    connector = connect(page="single", total="total")
    batches = read(connector)
    assert (ids(batches), batches[-1].partial) == (["0", "1", "2", "3"], False)
    assert "states 10 as the number of all records, but sent 4 records. Check" in next(iter(connector.notices()))
    service.before = lambda _: Sent({"data": service.records, "total": 10}, headers={"ETag": '"a"'})
    assert len(ids(read(connector, batches[-1].cursor))) == 10
    assert "if-none-match" not in service.asked[-1].headers
    assert not list(connector.notices())


def test_different_records_with_one_key_on_a_page_are_all_read_and_reported(
    service: RestService, connect: Connect
) -> None:
    service.records = [{"id": 1, "rev": "A"}, {"id": 1, "rev": "B"}, {"id": 2, "rev": "A"}, {"id": 2, "rev": "A"}]
    connector = connect(deletes="remove")
    (batch,) = read(connector)
    assert batch.records["rev"].to_list() == ["A", "B", "A"]
    assert not batch.partial
    [sentence] = connector.notices()
    assert "different records with the same key on one page, such as id=1 (keys: 1)" in sentence
    assert read(connect(key=["id", "rev"]))[0].records.height == 3


def test_a_record_on_two_pages_is_read_once_as_it_was_last(service: RestService, connect: Connect) -> None:
    service.paging = "offset"
    at_request(service, 2, lambda: service.records.insert(0, {"id": 99, "mass": "1"}))
    (batch,) = read(connect(page=OFFSET))
    assert sorted(batch.records["id"].to_list()) == sorted({str(number) for number in range(10)})
    assert batch.positions.to_list() == [f"id={one}" for one in batch.records["id"]]


def test_an_unchanged_page_token_ends_with_a_sentence(service: RestService, connect: Connect) -> None:
    service.before = lambda _: Sent({"data": service.records[:1], "meta": {"token": "same"}})
    connector = connect(page={"type": "cursor", "path": "meta.token", "param": "token"})
    with pytest.raises(SourceBroken, match="leads from a page to a page that was read already"):
        read(connector)
    assert len(service.asked) == 2


def test_a_redirect_within_the_service_is_followed(service: RestService, connect: Connect) -> None:
    def before(asked: Asked) -> Sent | None:
        return Sent(None, status=307, headers={"Location": "/v2/parts"}) if asked.path == "/parts" else None

    service.before = before
    assert len(ids(read(connect()))) == 10


def test_more_pages_than_the_limit_are_refused(service: RestService, connect: Connect) -> None:
    service.paging = "link"
    with pytest.raises(SourceBroken, match="more than 2 pages"):
        read(connect(max_pages=2))
    assert len(service.asked) == 2


def test_odata_finds_records_links_and_total(service: RestService, connect: Connect) -> None:
    service.paging = "odata"
    service.counts = True
    batches = read(connect(page="odata", records="", deletes="remove"))
    assert len(ids(batches)) == 10
    assert not any(batch.partial for batch in batches)
    assert len(service.asked) == 4


def test_odata_2_is_read_too(service: RestService, connect: Connect) -> None:
    def before(asked: Asked) -> Sent:
        if "skip" in asked.params:
            return Sent({"d": {"results": [{"id": 2}]}})
        return Sent({"d": {"results": [{"id": 1}], "__next": f"{service.url}/parts?skip=1"}})

    service.before = before
    assert ids(read(connect(page="odata", records=""))) == ["1", "2"]


def test_a_link_with_another_value_of_a_configured_parameter_is_followed(
    service: RestService, connect: Connect
) -> None:
    service.paging = "link"
    assert ids(read(connect(page="link", params={"offset": "0", "apikey": "s3cret"}))) == list(map(str, range(10)))
    assert [asked.params["offset"] for asked in service.asked] == ["0", "3", "6", "9"]
    assert {asked.params["apikey"] for asked in service.asked} == {"s3cret"}
