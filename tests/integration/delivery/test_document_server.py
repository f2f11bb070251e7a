"""The server that implements only the document offers no feature beyond it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.document_server import DocumentServer, Refuse, Store

HEADERS = {"x-api-key": "test-key", "ClientId": "tester"}


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    with DocumentServer() as running:
        yield running
        assert running.errors == 0


@pytest.fixture
def sink(server: DocumentServer) -> str:
    workspace = server.workspace()
    entries = [{"key": "a/b", "value": "1", "dataType": "scalar"}]
    created = server.store.create_sink(workspace, {"label": "L", "entries": entries})
    return f"{server.url}/v1/workspace/{workspace}/data-sink/{created['id']}"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/..", {"label": "M"}),
        ("PATCH", "", {"label": "M"}),
        ("DELETE", "", None),
        ("POST", "", {"key": "k", "dataType": "scalar"}),
        ("PATCH", "/a%2Fb", {"value": "2"}),
        ("DELETE", "/a%2Fb", None),
    ],
)
def test_rows_five_to_ten_require_the_client_id(sink: str, method: str, path: str, body: object) -> None:
    url = sink.rpartition("/")[0] if path == "/.." else sink + path
    without = httpx.request(method, url, json=body, headers={"x-api-key": "test-key"})
    assert (without.status_code, without.json()) == (400, {"error": "The header ClientId is required"})
    assert httpx.request(method, url, json=body, headers=HEADERS).is_success


@pytest.mark.parametrize(
    "body", [[{"key": "a", "value": "1"}], {"entries": []}, {"key": "a", "value": "1", "dataType": "t"}]
)
def test_the_mass_update_accepts_only_one_key_and_one_value(sink: str, body: object) -> None:
    assert httpx.post(f"{sink}/mass", json=body, headers=HEADERS).status_code == 400
    done = httpx.post(f"{sink}/mass", json={"key": "a/b", "value": "2"}, headers={"x-api-key": "test-key"})
    assert (done.status_code, done.json()["value"], done.json()["dataType"]) == (200, "2", "scalar")


def test_no_response_announces_limits_or_features(sink: str) -> None:
    responses = [httpx.get(sink, headers=HEADERS), httpx.get(f"{sink}/nothing", headers=HEADERS)]
    assert [response.status_code for response in responses] == [200, 404]
    for response in responses:
        assert {name.lower() for name in response.headers} == {"server", "date", "content-length", "content-type"}


def test_a_wrong_key_is_rejected_and_a_duplicate_is_a_conflict(sink: str) -> None:
    assert httpx.get(sink, headers={"x-api-key": "other"}).status_code == 401
    body = {"key": "a/b", "dataType": "scalar"}
    assert httpx.post(sink, json=body, headers=HEADERS).status_code == 409


def test_requests_are_recorded_and_fail_on_demand(server: DocumentServer, sink: str) -> None:
    server.fail(Refuse(status=503, headers={"Retry-After": "7"}), when=lambda request: request.path.endswith("/mass"))
    assert httpx.get(sink, headers=HEADERS).status_code == 200
    refused = httpx.post(f"{sink}/mass", json={"key": "a/b", "value": "2"}, headers=HEADERS)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "7")
    assert [request.method for request in server.requests] == ["GET", "POST"]
    assert server.requests[1].json == {"key": "a/b", "value": "2"}


def test_written_records_exist_after_a_restart_even_after_a_truncated_line(tmp_path: Path) -> None:
    file = tmp_path / "service.ndjson"
    store = Store(file=file)
    workspace = str(store.create_workspace({"label": "Bench"})["id"])
    sink = str(store.create_sink(workspace, {"label": "L"})["id"])
    store.create_entry(workspace, sink, {"key": "k", "value": "1", "dataType": "scalar"})
    store.close()
    with file.open("ab") as log:
        log.write(json.dumps({"do": "drop sink", "sink": sink}).encode()[:-3])
    again = Store(file=file)
    again.create_entry(workspace, sink, {"key": "l", "value": "2", "dataType": "scalar"})
    again.close()
    last = Store(file=file)
    assert last.values(sink) == {"k": ("1", "scalar"), "l": ("2", "scalar")}
    last.close()
