"""Pushes against a service with responses that the test writes, and against a proxy before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from ingestd.client import Client
from ingestd.client.errors import TooLarge
from ingestd.client.named_sink import NamedSink
from ingestd.client.push import PushResult
from tests.support.document_server import DocumentServer, Garbage, Refuse, Request


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    """A service that announces bulk updates of 8 entries."""
    with DocumentServer() as running:
        running.headers["X-Bulk-Mass"] = "max-items=8, max-bytes=100000"
        yield running


@pytest.fixture
def sink(server: DocumentServer) -> Iterator[NamedSink]:
    with Client(server.url, api_key=server.api_key) as client:
        place = server.workspace()
        client.create_sink(place, label="Mass")
        found = client.sink(place, "Mass")
        server.forget_requests()
        yield found


def push(sink: NamedSink, keys: Sequence[str]) -> PushResult:
    return sink.push([{"part": key, "mass": "1"} for key in keys], key="part", value="mass")


def results(*found: dict[str, Any]) -> Refuse:
    """Return the response with the result of each item."""
    listed = [{"index": index, **one} for index, one in enumerate(found)]
    failed = sum(one["status"] >= 300 for one in found)
    content = {"results": listed, "succeeded": len(found) - failed, "failed": failed}
    return Refuse(status=200, body=json.dumps(content).encode())


def test_an_item_with_a_refusing_status_is_rejected_even_without_an_error(
    server: DocumentServer, sink: NamedSink
) -> None:
    server.fail(Refuse(status=400), results({"status": 200}, {"status": 422}), when=lambda request: request.writes)
    result = push(sink, ["a", "b"])
    assert result.created == 1
    assert [(one.row, one.key) for one in result.rejected] == [(1, "b")]
    assert result.rejected[0].reason == "The service refuses the entry (422): the service gives no reason."


def test_the_words_of_the_service_about_an_item_are_quoted_exactly(server: DocumentServer, sink: NamedSink) -> None:
    reasons = ["The value '1..2' is no number.", "Expected '../x'", "Which unit?"]
    found = results(*({"status": 422, "error": {"detail": reason}} for reason in reasons))
    server.fail(Refuse(status=400), found, when=lambda request: request.writes)
    assert [one.reason for one in push(sink, ["a", "b", "c"]).rejected] == [
        "The service refuses the entry (422): The value '1..2' is no number.",
        "The service refuses the entry (422): Expected '../x'.",
        "The service refuses the entry (422): Which unit?",
    ]


def stored(items: int) -> Refuse:
    """Return the response that counts ``items`` created entries."""
    counts = {"accepted": items, "created": items, "updated": 0, "unchanged": 0, "deleted": 0}
    return Refuse(status=200, body=json.dumps(counts).encode())


def refuse_key(server: DocumentServer, bad: str) -> None:
    """Let the service refuse each bulk update with the entry of this key, and offer no results by item."""

    def respond(request: Request) -> Refuse | None:
        if not request.writes:
            return None
        keys = [one["key"] for one in request.json]
        if bad in keys:
            errors = [{"pointer": f"/{keys.index(bad)}/key", "detail": "It has 'x..y'"}]
            return Refuse(status=400, body=json.dumps({"error": "Bad request", "errors": errors}).encode())
        return stored(len(keys))

    server.fault_of = respond


def test_a_rejection_names_the_member_and_not_its_place_in_the_request(server: DocumentServer, sink: NamedSink) -> None:
    refuse_key(server, "c")
    (rejected,) = push(sink, ["a", "b", "c"]).rejected
    assert (rejected.row, rejected.key) == (2, "c")
    assert rejected.reason == (
        "The service refuses the entry (400). The service says: Bad request (key: It has 'x..y')"
    )


def test_results_by_item_are_requested_once_from_a_service_that_offers_none(
    server: DocumentServer, sink: NamedSink
) -> None:
    refuse_key(server, "6")
    assert [one.key for one in push(sink, [str(n) for n in range(8)]).rejected] == ["6"]
    assert [len(request.json) for request in server.writes()] == [8, 8, 4, 4, 2, 2, 1, 1]
    assert sum("partial=true" in request.path for request in server.writes()) == 1


@pytest.mark.parametrize("is_bulk", [True, False])
def test_a_proxy_that_calls_a_small_request_too_large_ends_the_push_and_rejects_nothing(
    server: DocumentServer, sink: NamedSink, is_bulk: bool
) -> None:
    if not is_bulk:
        server.headers.clear()
    server.fault_of = lambda request: Garbage(status=413) if request.writes else None
    with pytest.raises(TooLarge) as caught:
        push(sink, ["a", "b"])
    assert caught.value.__notes__ == ["0 entries of 2 were sent before. A repeated push sends the rest."]


def test_a_large_request_is_sent_in_halves_to_a_proxy_that_calls_it_too_large(
    server: DocumentServer, sink: NamedSink
) -> None:
    def respond(request: Request) -> Garbage | Refuse | None:
        if len(request.body) > 40_000:
            return Garbage(status=413)
        return stored(len(request.json)) if request.writes else None

    server.fault_of = respond
    rows = [{"part": str(n), "mass": "1" * size} for n, size in enumerate([50_000, 15_000, 15_000, 15_000])]
    result = sink.push(rows, key="part", value="mass")
    assert (result.created, [one.row for one in result.rejected]) == (3, [0])


def test_a_row_with_a_value_that_the_service_changes_is_rejected_with_both_values(
    server: DocumentServer, sink: NamedSink
) -> None:
    server.headers.clear()
    entry = server.store.create_entry

    def shortening(workspace: str, sink: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return entry(workspace, sink, {**body, "value": body["value"][:4]})

    server.store.create_entry = shortening  # type: ignore[method-assign]
    rows = [{"part": "a", "mass": "1.25"}, {"part": "b", "mass": "12.500"}]
    result = sink.push(rows, key="part", value="mass")
    assert result.created == 1
    assert [one.key for one in result.rejected] == ["b"]
    assert "The sent value is '12.500', and the response has '12.5'." in result.rejected[0].reason
