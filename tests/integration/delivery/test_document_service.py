"""Delivery to a service that implements only the interface document, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.telemetry.catalogue.delivery import EntriesRejected, SinkAdopted, SinkCreated
from tests.support.delivery_rig import FAST_LIMITS, rig
from tests.support.document_server import DocumentServer, DropAfter, Garbage, Refuse, Store
from tests.support.memory_mirror import Desired

ODD_KEYS = ["a/b", "a%2Fb", "100%", "kg²", "x y", "?q=1", "#", "mass", "list", "+", "..a", "%2e%2e", "a\\b", "é"]


@pytest.fixture(params=[False, True], ids=["mass responds 404", "mass creates"])
def server(request: pytest.FixtureRequest) -> Iterator[DocumentServer]:
    with DocumentServer(Store(mass_creates=request.param)) as running:
        yield running
        assert running.errors == 0


def address(workspace: str, label: str = "Mass budget") -> SinkAddress:
    return SinkAddress(workspace=workspace, by="label", name=label)


async def test_a_new_sink_is_created_with_its_first_entries(server: DocumentServer) -> None:
    to = address(server.workspace())
    wanted: dict[str, Desired] = {f"P-{n}": (f"0.{n}0", "scalar") for n in range(50)}
    async with rig(url=server.url) as running:
        running.desire(to, wanted)
        assert await running.drained() == []
    assert server.values("Mass budget") == wanted
    assert [request.method for request in server.writes()] == ["POST"]
    assert len(running.events_of(SinkCreated)) == 1


async def test_creates_updates_and_deletes_use_the_operations_of_the_document(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar"), "b": ("2", "scalar"), "c": ("3", "scalar")})
        await running.drained()
        server.forget_requests()
        running.desire(to, {"a": ("1.10", "scalar"), "b": None, "d": ("4", "text")})
        assert await running.drained() == []
    assert server.values("Mass budget") == {"a": ("1.10", "scalar"), "c": ("3", "scalar"), "d": ("4", "text")}
    (sink,) = server.store.by_label("Mass budget")
    path = f"/v1/workspace/{to.workspace}/data-sink/{sink}"
    seen = {(request.method, request.path) for request in server.writes()}
    assert seen == {("POST", f"{path}/mass"), ("DELETE", f"{path}/b"), ("POST", path)}
    masses = [request.json for request in server.writes() if request.path.endswith("/mass")]
    assert masses == [{"key": "a", "value": "1.10"}]


class TrimmingStore(Store):
    """Stores values without surrounding white space."""

    def _write(self, change: dict[str, Any]) -> None:
        for record in (*change.get("entries", ()), change.get("record", {})):
            if isinstance(record.get("value"), str):
                record["value"] = record["value"].strip()
        super()._write(change)


async def test_an_entry_with_a_value_that_the_service_changes_is_rejected_and_followed() -> None:
    with DocumentServer(TrimmingStore()) as server:
        to = address(server.workspace())
        async with rig(url=server.url) as running:
            running.desire(to, {"a": (" x ", "text"), "b": ("1", "text")})
            assert await running.drained() == []
            running.desire(to, {"c": (" y ", "text")})
            assert await running.drained() == []
            assert running.mirror.rejected_entries.keys() == {"a", "c"}
            sentence = "The sent value is ' x ', and the response has 'x'."
            assert sentence in running.mirror.rejected_entries["a"].reason
            running.desire(to, {"a": ("z", "text"), "c": None})
            assert await running.drained() == []
        assert server.values("Mass budget") == {"a": ("z", "text"), "b": ("1", "text")}


async def test_a_later_value_of_another_program_in_a_response_does_not_reject_the_entry(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar")})
        await running.drained()
        body = b'{"key": "a", "value": "9"}'
        server.fail(
            Garbage(status=200, body=body, content_type="application/json"), when=lambda request: request.writes
        )
        running.desire(to, {"a": ("2", "scalar")})
        assert await running.drained() == []
        assert not running.mirror.rejected_entries
    assert server.values("Mass budget") == {"a": ("2", "scalar")}
    assert len({request.headers["idempotency-key"] for request in server.writes()}) == 3


async def test_every_key_that_a_url_can_contain_is_created_updated_and_deleted(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        for wanted in (
            dict.fromkeys(ODD_KEYS, ("1", "scalar")),
            dict.fromkeys(ODD_KEYS, ("2", "text")),
        ):
            running.desire(to, wanted)
            assert await running.drained() == []
            assert server.values("Mass budget") == wanted
        running.desire(to, dict.fromkeys(ODD_KEYS))
        assert await running.drained() == []
    assert server.values("Mass budget") == {}


async def test_a_changed_data_type_is_written_although_the_mass_update_has_no_type(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar"), "b": ("1", "scalar")})
        await running.drained()
        server.forget_requests()
        running.desire(to, {"a": ("1", "text"), "b": ("2", "scalar")})
        await running.drained()
    assert server.values("Mass budget") == {"a": ("1", "text"), "b": ("2", "scalar")}
    assert sorted(request.method for request in server.writes()) == ["PATCH", "POST", "POST"]


async def test_a_key_of_dots_is_rejected_if_only_a_path_could_name_it(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"..": ("1", "scalar"), "good": ("1", "scalar")})
        await running.drained()
        running.desire(to, {"..": None, "good": ("2", "scalar")})
        assert await running.drained() == []
    assert server.values("Mass budget") == {"..": ("1", "scalar"), "good": ("2", "scalar")}
    assert "can't be addressed in a URL" in running.mirror.rejected_entries[".."].reason


async def test_an_existing_sink_is_read_once_and_only_differences_are_written(server: DocumentServer) -> None:
    workspace = server.workspace()
    server.store.create_sink(
        workspace,
        {
            "label": "Mass budget",
            "entries": [{"key": f"P-{n}", "value": str(n), "dataType": "scalar"} for n in range(100)],
        },
    )
    async with rig(url=server.url) as running:
        running.desire(address(workspace), {f"P-{n}": (str(n) if n % 50 else "changed", "scalar") for n in range(110)})
        assert await running.drained() == []
    assert len(server.writes()) == 2 + 10
    assert server.values("Mass budget")["P-50"] == ("changed", "scalar")
    (adopted,) = running.events_of(SinkAdopted)
    assert isinstance(adopted, SinkAdopted)
    assert (adopted.entries, adopted.acknowledged) == (100, 98)


async def test_without_pending_entries_no_request_is_sent(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as first:
        first.desire(to, {"a": ("1", "scalar")})
        await first.drained()
    server.forget_requests()
    async with rig(url=server.url, mirror=first.mirror) as second:
        second.desire(to, {"a": ("1", "scalar")})
        assert await second.drained() == []
    assert server.requests == []


async def test_a_lost_response_to_the_creation_of_a_sink_creates_no_second_sink(server: DocumentServer) -> None:
    to = address(server.workspace())
    server.fail(DropAfter(), when=lambda request: request.method == "POST")
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar"), "b": ("2", "scalar")})
        assert await running.drained() == []
    assert server.values("Mass budget") == {"a": ("1", "scalar"), "b": ("2", "scalar")}
    assert len(server.writes()) == 1


async def test_a_deleted_sink_is_created_again_with_all_entries(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar"), "b": ("2", "scalar")})
        await running.drained()
        (sink,) = server.store.by_label("Mass budget")
        server.store.delete_sink(to.workspace, sink)
        running.desire(to, {"a": ("3", "scalar")})
        assert await running.drained() == []
    assert server.values("Mass budget") == {"a": ("3", "scalar"), "b": ("2", "scalar")}


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_sink_that_was_deleted_while_nothing_is_pending_is_created_again(
    server: DocumentServer, restarts: bool
) -> None:
    to = address(server.workspace())
    wanted: dict[str, Desired] = {"a": ("1", "scalar"), "b": ("2", "scalar")}
    async with rig(url=server.url) as first:
        first.desire(to, wanted)
        await first.drained()
        (sink,) = server.store.by_label("Mass budget")
        server.store.delete_sink(to.workspace, sink)
        if not restarts:
            first.dispatcher.check_sinks()
            assert await first.drained() == []
    if restarts:
        async with rig(url=server.url, mirror=first.mirror, checks_sinks=True) as second:
            assert await second.drained() == []
    assert server.values("Mass budget") == wanted
    assert server.store.by_label("Mass budget") != [sink]


async def test_a_check_of_an_existing_sink_is_one_request(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar")})
        await running.drained()
        server.forget_requests()
        running.dispatcher.check_sinks()
        assert await running.drained() == []
        (request,) = server.requests
        assert not request.writes
        running.desire(to, {"a": ("2", "scalar")})
        await running.drained()
    assert [one.writes for one in server.requests] == [False, True], "the sink is still resolved"


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_a_check_without_a_response_of_the_service_changes_nothing(server: DocumentServer, status: int) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar")})
        await running.drained()
        server.fail(Refuse(status=status), when=lambda request: not request.writes)
        running.dispatcher.check_sinks()
        assert await running.drained() == []
        assert [lane.sentence for lane in running.dispatcher.report()] == [""]
    assert server.writes()[1:] == []


async def test_a_deleted_sink_that_must_not_be_created_is_reported_until_it_is_restored(server: DocumentServer) -> None:
    to = address(server.workspace())
    limits = replace(FAST_LIMITS, missing_sink="stop")
    async with rig(url=server.url, limits=limits) as running:
        running.desire(to, {"a": ("1", "scalar")})
        await running.drained()
        (sink,) = server.store.by_label("Mass budget")
        saved = [(kept, dict(kept)) for kept in (server.store.sinks, server.store.entries)]
        server.store.delete_sink(to.workspace, sink)
        running.dispatcher.check_sinks()
        await running.drained()
        (lane,) = running.dispatcher.report()
        assert lane.status == "paused"
        assert "The service no longer has the sink" in lane.sentence
        for kept, before in saved:
            kept.update(before)
        running.dispatcher.retry_now()
        while (report := running.dispatcher.report()[0]).status != "idle":
            known = running.dispatcher.changes.generation
            await running.dispatcher.changes.wait_past(known)
        assert report.sentence == ""
    assert server.values("Mass budget") == {"a": ("1", "scalar")}


async def test_a_label_in_another_unicode_form_is_the_same_sink(server: DocumentServer) -> None:
    workspace = server.workspace("Pru\u0308fstand")
    async with rig(url=server.url) as first:
        first.desire(address(workspace, "Ma\u00dfe \u00e9"), {"a": ("1", "scalar")})
        await first.drained()
    async with rig(url=server.url) as without_state:
        without_state.desire(address("Pr\u00fcfstand", "Ma\u00dfe e\u0301"), {"b": ("2", "scalar")})
        assert await without_state.drained() == []
    assert server.values("Ma\u00dfe \u00e9") == {"a": ("1", "scalar"), "b": ("2", "scalar")}


async def test_a_deleted_entry_is_created_again(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "text"), "b": ("2", "scalar")})
        await running.drained()
        (sink,) = server.store.by_label("Mass budget")
        for key in ("a", "b"):
            server.store.delete_entry(to.workspace, sink, key)
        running.desire(to, {"a": ("3", "text"), "b": None})
        assert await running.drained() == []
    assert server.values("Mass budget") == {"a": ("3", "text")}


async def test_a_rejected_entry_does_not_affect_other_entries(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"": ("1", "scalar")} | {f"P-{n}": ("1", "scalar") for n in range(30)})
        assert await running.drained() == []
    assert len(server.values("Mass budget")) == 30
    assert list(running.mirror.rejected_entries) == [""]
    assert "Invalid request" in running.mirror.rejected_entries[""].reason
    assert len(running.events_of(EntriesRejected)) == 1


async def test_the_client_id_and_key_are_sent_and_no_header_beyond_the_document(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"a": ("1", "scalar")})
        await running.drained()
        running.desire(to, {"a": ("2", "scalar")})
        await running.drained()
    assert {request.headers["x-api-key"] for request in server.requests} == {"test-key"}
    assert {request.headers["clientid"] for request in server.writes()} == {"tester"}
    assert not any("?" in request.path for request in server.requests)
    assert not any(isinstance(json.loads(request.body), list) for request in server.writes())


async def test_a_throttled_lane_waits_and_loses_nothing(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url) as running:
        running.desire(to, {"start": ("1", "scalar")})
        await running.drained()
        server.fail(
            Refuse(status=429, headers={"Retry-After": "0"}),
            Refuse(status=503),
            Refuse(status=500, body=b"<html>"),
            when=lambda request: request.writes,
        )
        running.desire(to, {f"P-{n}": ("1", "scalar") for n in range(20)})
        assert await running.drained() == []
    assert len(server.values("Mass budget")) == 21


async def test_updates_use_patch_if_configured(server: DocumentServer) -> None:
    to = address(server.workspace())
    async with rig(url=server.url, limits=replace(FAST_LIMITS, update_with="patch")) as running:
        running.desire(to, {"a/b": ("1", "scalar"), "c": ("1", "scalar")})
        await running.drained()
        server.forget_requests()
        running.desire(to, {"a/b": ("2", "text"), "c": ("1.10", "scalar")})
        assert await running.drained() == []
    assert server.values("Mass budget") == {"a/b": ("2", "text"), "c": ("1.10", "scalar")}
    assert [request.method for request in server.writes()] == ["PATCH", "PATCH"]
