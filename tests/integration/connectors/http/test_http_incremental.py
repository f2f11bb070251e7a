"""Only the records since the last reading: the boundary is read once, and nothing at it is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from connectors.http import HttpConnector, HttpOptions
from ingestd.sdk import Partition, SourceContext
from tests.support.rest_service import RestService, Sent

PARTITION = Partition(name="parts", snapshot=False)
Connect = Callable[..., HttpConnector]
BASIC = {"type": "basic", "user": "a", "password": "1"}
T = "2026-11-23T10:00:00.{:03}Z"


@pytest.fixture(autouse=True)
def records(service: RestService) -> None:
    service.records = [{"id": number, "at": T.format(number // 2)} for number in range(10)]


@pytest.fixture
def reader(connect: Connect) -> Callable[[], list[str]]:
    """Read from the last cursor, which passes through JSON, with a new connector."""
    cursor: Any = None

    def read(**more: Any) -> list[str]:
        nonlocal cursor
        since = {"param": "since", "field": "at"} | more
        found = []
        for batch in connect(mode="incremental", since=since).read(PARTITION, cursor):
            cursor = json.loads(json.dumps(batch.cursor))
            found += batch.records["id"].to_list() if batch.records.height else []
        return found

    return read


def test_the_first_reading_has_everything_in_the_order_of_change(
    service: RestService, reader: Callable[[], list[str]]
) -> None:
    service.records.reverse()
    assert [int(one) // 2 for one in reader()] == [number // 2 for number in range(10)]
    assert "since" not in service.asked[0].params
    assert reader() == []
    assert service.asked[1].params["since"] == T.format(4)


def test_a_later_record_of_the_last_time_is_read(service: RestService, reader: Callable[[], list[str]]) -> None:
    reader()
    service.records.append({"id": 10, "at": T.format(4)})
    assert reader() == ["10"]
    assert reader() == []


def test_a_record_that_changes_within_the_last_time_is_read(
    service: RestService, reader: Callable[[], list[str]]
) -> None:
    reader()
    service.records[9]["mass"] = "changed"
    assert reader() == ["9"]


def test_a_record_that_appears_late_is_found_by_the_overlap(
    service: RestService, reader: Callable[..., list[str]]
) -> None:
    reader(overlap=0.003)
    service.records.append({"id": 11, "at": T.format(2)})
    assert reader(overlap=0.003) == ["11"]
    assert reader(overlap=0.003) == []
    service.records.append({"id": 12, "at": T.format(0)})
    assert reader(overlap=0.003) == []


def test_a_record_without_a_time_is_rejected_once_and_the_others_are_read(
    service: RestService, connect: Connect
) -> None:
    service.records.insert(3, {"id": 99, "at": "~soon"})
    connector = connect(mode="incremental", since={"param": "since", "field": "at"})
    batches = list(connector.read(PARTITION, None))
    rejects = [reject for batch in batches for reject in batch.rejects]
    assert [reject.reason for reject in rejects] == [
        "Item 4 has the value '~soon', which is neither a time as in ISO 8601 nor a number in the field at, which orders changes."
    ]
    assert sum(batch.records.height for batch in batches) == 10
    assert list(connector.read(PARTITION, batches[-1].cursor)) == []


@pytest.mark.parametrize("later", ["2099-01-01T00:00:00Z", "2027-01-15T09:00:00Z"])
def test_a_record_with_a_future_time_hides_no_later_change(
    service: RestService, connect: Connect, reader: Callable[[], list[str]], later: str
) -> None:
    service.records.append({"id": 10, "at": later})
    assert "10" in reader()
    assert reader() == []
    assert service.asked[-1].params["since"] == T.format(4)
    service.records += [{"id": 11, "at": "2026-12-01T00:00:00Z"}, {"id": 12, "at": later}]
    assert reader() == ["11", "12"]
    assert reader() == []
    connector = connect(mode="incremental", since={"param": "since", "field": "at"})
    list(connector.read(PARTITION, None))
    notices = list(connector.notices())
    assert len(notices) == (later > "2028")
    assert all("2 records with a time in the future in the field at, such as 2099-01-01" in one for one in notices)


def test_local_times_ahead_of_utc_move_the_requested_time_forward_later(service: RestService, tmp_path: Path) -> None:
    now, cursor = 1_800_000_000.0, None
    service.records = []
    for hour in range(4):
        local = datetime.fromtimestamp(now + hour * 3600, UTC) + timedelta(hours=1)
        service.records.append({"id": hour, "at": local.replace(tzinfo=None).isoformat()})
        context = SourceContext(pipeline="t", base=tmp_path, now=partial(float, now + hour * 3600))
        settings = {"url": f"{service.url}/parts", "records": "data", "mode": "incremental"}
        since = {"param": "since", "field": "at"}
        connector = HttpConnector(HttpOptions.model_validate({**settings, "since": since}), context)
        (batch,) = connector.read(PARTITION, cursor)
        assert batch.records["id"].to_list() == [str(hour)]
        assert not list(connector.notices())
        cursor = batch.cursor
    assert [asked.params.get("since") for asked in service.asked] == [
        None,
        None,
        "2027-01-15T09:00:00",
        "2027-01-15T10:00:00",
    ]


def test_a_cursor_with_a_future_time_is_not_used(service: RestService, connect: Connect) -> None:
    connector = connect(mode="incremental", since={"param": "since", "field": "at"})
    cursor = list(connector.read(PARTITION, None))[-1].cursor
    service.records.append({"id": 10, "at": "2026-12-01T00:00:00Z"})
    stuck = {**cursor, "since": "2099-01-01T00:00:00Z"}
    (batch,) = connector.read(PARTITION, stuck)
    assert "10" in batch.records["id"].to_list()
    assert batch.cursor["since"] == "2026-12-01T00:00:00Z"


def test_fewer_records_than_the_stated_total_are_reported(service: RestService, connect: Connect) -> None:
    service.counts = True
    service.before = lambda _: Sent({"data": service.records[:4], "total": 10})
    connector = connect(mode="incremental", since={"param": "since", "field": "at"}, total="total")
    list(connector.read(PARTITION, None))
    assert "states 10 as the number of all records, but sent 4 records." in next(iter(connector.notices()))


def test_a_template_puts_the_time_into_the_parameter(service: RestService, connect: Connect) -> None:
    since = {"param": "$filter", "field": "at", "value": "at ge {since}", "start": "2026-01-01T00:00:00Z"}
    connector = connect(mode="incremental", since=since)
    cursor = list(connector.read(PARTITION, None))[-1].cursor
    list(connector.read(PARTITION, cursor))
    assert [asked.params["$filter"] for asked in service.asked] == [
        "at ge 2026-01-01T00:00:00Z",
        f"at ge {T.format(4)}",
    ]


def test_a_reading_that_ends_between_the_parts_of_a_block_loses_no_record(
    service: RestService, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.http.connector.CELLS", 20)  # one block of text becomes several batches
    service.records = [{"id": number, "at": T.format(number), f"only {number}": 1} for number in range(10)]
    options = {"mode": "incremental", "since": {"param": "since", "field": "at"}}
    first, *others = connect(**options).read(PARTITION, None)
    assert others
    later = connect(**options).read(PARTITION, json.loads(json.dumps(first.cursor)))
    found = {one for batch in (first, *later) for one in batch.records["id"].to_list()}
    assert found == {str(number) for number in range(10)}


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ({}, {}, True),
        ({}, {"params": {"project": "B"}}, False),
        ({"params": {"project": "A", "x": "1"}}, {"params": {"x": "1", "project": "A"}}, True),
        ({"params": {"project": "A"}}, {"params": {"project": "B"}}, False),
        ({"headers": {"X-Tenant": "A"}}, {"headers": {"X-Tenant": "B"}}, False),
        ({"auth": BASIC}, {"auth": BASIC | {"password": "2"}}, True),
        ({"auth": BASIC}, {"auth": BASIC | {"user": "b"}}, False),
        ({"auth": {"type": "bearer", "token": "1"}}, {"auth": {"type": "bearer", "token": "2"}}, True),
    ],
)
def test_other_parameters_headers_or_users_request_everything(
    service: RestService, connect: Connect, before: Any, after: Any, is_same: bool
) -> None:
    since = {"mode": "incremental", "since": {"param": "since", "field": "at"}}
    cursor = list(connect(**since, **before).read(PARTITION, None))[-1].cursor
    found = [one for batch in connect(**since, **after).read(PARTITION, cursor) for one in batch.records["id"]]
    assert ("since" in service.asked[-1].params, found == []) == (is_same, is_same)
    service.validates = True
    cursor = list(connect(**before).read(PARTITION, None))[-1].cursor
    list(connect(**after).read(PARTITION, cursor))
    assert ("if-none-match" in service.asked[-1].headers) == is_same
