"""Origins in requests: sent to a service that takes them, within its limits, and never in the way of a value (contract M12)."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.delivery.items import split_items
from ingestd.delivery.origins import OriginEncoder
from ingestd.mirror.port import Claim, ClaimPart, PartOrigin
from ingestd.telemetry.catalogue.delivery import OriginsRefused
from ingestd.wire.origin import OriginLimits, decode_row_steps, encode_row_steps
from tests.support.bulk_service import BulkService
from tests.support.delivery_rig import FAST_LIMITS, rig
from tests.support.memory_mirror import Desired

PAGE = "http://bench-3.example:8402"
RUN = PartOrigin(pipeline="bench-a3", partition="a/run-0001.csv", file="run-0001.csv", run=17)
SENT = {"source": "a/run-0001.csv", "file": "run-0001.csv", "run": "17", "pipeline": "bench-a3"}
LIMITS = OriginLimits(max_origins=1_000, max_text=255)


def part_of(rows: list[int], origin: PartOrigin = RUN) -> ClaimPart:
    items = [{"key": f"K-{row}", "value": str(row)} for row in rows]
    return ClaimPart(
        segment=1, kind="create", items=len(rows), body=json.dumps(items).encode(), oldest=1, origin=origin,
        row_steps=encode_row_steps(rows),
    )  # fmt: skip


def sent(encoder: OriginEncoder, *parts: ClaimPart, max_bytes: int = 10_000) -> Any:
    return json.loads(encoder.claim_body(Claim(sink=1, parts=parts), max_bytes))


def test_rows_are_short_steps_because_the_items_of_a_part_are_sent_in_their_order() -> None:
    body = sent(OriginEncoder(LIMITS, page=""), part_of([9, 2, 3]), part_of([5, 5], replace(RUN, run=18)))
    assert [entry["value"] for entry in body["entries"]] == ["2", "3", "9", "5", "5"]
    assert body["origins"] == [
        {**SENT, "count": 3, "rowSteps": [2, 1, 6]},
        {**SENT, "run": "18", "count": 2, "rowSteps": [5, 0]},
    ]


def test_what_does_not_fit_is_left_out() -> None:
    limits = OriginLimits(max_origins=2, max_text=12)
    long = replace(RUN, partition="x" * 13, file="two\nlines", pipeline=" ")
    body = sent(OriginEncoder(limits, page=""), part_of([0], long), part_of([2**32], PartOrigin()), part_of([7]))
    assert body["origins"] == [{"source": "ingestd", "run": "17", "count": 1}, {"source": "ingestd", "count": 1}]
    assert isinstance(sent(OriginEncoder(LIMITS, page=""), part_of([1]), max_bytes=60), list)


def test_an_origin_links_to_the_page_of_its_file_if_that_has_an_address() -> None:
    odd = replace(RUN, partition="a/ü #1.csv")
    (origin,) = sent(OriginEncoder(LIMITS, page=PAGE), part_of([2], odd))["origins"]
    assert origin["link"] == f"{PAGE}/files?name=a%2F%C3%BC%20%231.csv"
    (origin,) = sent(OriginEncoder(LIMITS, page=PAGE), part_of([2], replace(RUN, partition="x" * 2_040)))["origins"]
    assert "link" not in origin


@pytest.mark.parametrize("rows", [[], [0, 0], [2], [5, 0, 7, 1], [1, 2**32 - 1]])
def test_steps_give_the_rows_again(rows: list[int]) -> None:
    assert decode_row_steps(encode_row_steps(rows), len(rows)) == rows


class OriginService(BulkService):
    """A service that takes origins. ``refuses``: it refuses every request that has some, as a fault of its own."""

    refuses = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        if isinstance(body, dict) and ("origins" in body or "origin" in body):
            if self.refuses:
                self.requests.append(request)
                return httpx.Response(400, json={"error": "Validation failed"}, headers=self._announced())
            kept = {name: value for name, value in body.items() if name not in {"origin", "origins"}}
            content = json.dumps(kept["entries"] if "/mass" in request.url.path and "entries" in kept else kept)
            plain = httpx.Request(request.method, request.url, headers=request.headers, content=content)
            response = await super().handle_async_request(plain)
            self.requests[-1] = request
            response.headers.update(self._announced())
            return response
        response = await super().handle_async_request(request)
        response.headers.update(self._announced())
        return response

    def _announced(self) -> dict[str, str]:
        bulk = {"X-Bulk-Mass": "max-items=5000, max-bytes=16777216"} if self.announce else {}
        return {"X-Entry-Origin": str(LIMITS), **bulk}


def address(service: BulkService) -> SinkAddress:
    workspace = str(service.store.create_workspace({"label": "Bench"})["id"])
    return SinkAddress(workspace=workspace, by="label", name="Test bench")


def values(service: BulkService) -> dict[str, tuple[str | None, str]]:
    (sink,) = service.store.by_label("Test bench")
    return service.store.values(sink)


def bodies(service: BulkService) -> list[Any]:
    return [json.loads(request.content) for request in service.writes() if request.method == "POST"]


ENTRIES: dict[str, Desired | None] = {"a": ("1", "scalar"), "b": ("2", "scalar")}


async def test_a_service_that_announces_nothing_gets_the_requests_of_before() -> None:
    service = BulkService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, ENTRIES)
        await running.drained()
        running.desire(to, {"a": ("3", "scalar")})
        assert await running.drained() == []
    created, updated = (request.content for request in service.writes())
    assert b"origin" not in created
    assert updated == b'[{"key":"a","value":"3","dataType":"scalar"}]'


async def test_a_service_that_announces_them_gets_origins_with_all_writes_in_bulk() -> None:
    service = OriginService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, ENTRIES)
        await running.drained()
        service.bad = lambda key: key == "b"
        running.desire(to, {"a": ("3", "scalar"), "b": ("4", "scalar")})
        assert await running.drained() == []
    assert [body["origins"] for body in bodies(service)] == [[{"source": "ingestd", "count": 2}]] * 3
    assert values(service)["a"] == ("3", "scalar")
    assert set(running.mirror.rejected_entries) == {"b"}
    assert not running.events_of(OriginsRefused)


async def test_a_refused_origin_stops_no_value_and_is_not_sent_again() -> None:
    service = OriginService()
    service.refuses = True
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, ENTRIES)
        await running.drained()
        for value in "34":
            running.desire(to, {"a": (value, "scalar")})
            assert await running.drained() == []
    assert values(service) == {"a": ("4", "scalar"), "b": ("2", "scalar")}
    assert running.mirror.rejected_entries == {}
    assert len(running.events_of(OriginsRefused)) == 1
    assert isinstance(bodies(service)[-1], list)


@pytest.mark.parametrize("refuses", [False, True])
async def test_single_writes_have_an_origin_that_stops_no_value(refuses: bool) -> None:
    service = OriginService(announce=False)
    service.refuses = refuses
    async with rig(transport=service, limits=replace(FAST_LIMITS, create_items=1)) as running:
        to = address(service)
        running.desire(to, ENTRIES)
        await running.drained()
        running.desire(to, {"a": ("3", "scalar"), "c": ("5", "scalar")})
        assert await running.drained() == []
    assert values(service) == {"a": ("3", "scalar"), "b": ("2", "scalar"), "c": ("5", "scalar")}
    assert running.mirror.rejected_entries == {}
    single = [body for body in bodies(service) if "key" in body]
    assert any(body.get("origin") == {"source": "ingestd"} for body in single)
    assert any("origin" not in body for body in single) is refuses


async def test_an_entry_that_is_too_large_with_its_origin_is_sent_without() -> None:
    service = OriginService()
    async with rig(transport=service) as running:
        to = address(service)
        running.desire(to, ENTRIES)
        await running.drained()
        real = service.handle_async_request

        async def limited(request: httpx.Request) -> httpx.Response:
            if b"origins" in request.content:
                return httpx.Response(413, json={"error": "Too large"}, headers=service._announced())
            return await real(request)

        service.handle_async_request = limited  # type: ignore[method-assign]
        running.desire(to, {"a": ("3", "scalar")})
        assert await running.drained() == []
    assert values(service)["a"] == ("3", "scalar")


def test_split_items_keep_their_origin_and_row() -> None:
    items = split_items(Claim(sink=1, parts=(part_of([9, 2]), part_of([3], PartOrigin()))))
    assert [(item.origin.run, item.row) for item in items] == [(17, 9), (17, 2), (0, 3)]
