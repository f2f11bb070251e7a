"""Operations (contract DS1, DS2, DS3, DS5, DS6, DS7)."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import pytest

from tests.support.api_client import api_client
from workspaced.app import running
from workspaced.settings.model import Limits, WorkspacedSettings

_ID = "123e4567-e89b-12d3-a456-426614174000"
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_a_sink_is_created_with_its_entries_in_the_given_order(http: httpx.AsyncClient, sinks: str) -> None:
    # contract S1, S2, S3, S14
    body = {
        "id": _ID,
        "label": " Mass budget ",
        "description": "what it\nweighs",
        "tags": "a, b,,a",
        "icon": {"source": "DevIcon", "name": "scale", "metadata": {"size": 1.10}},
        "entries": [
            {"key": "z", "value": "0.10", "dataType": "scalar"},
            {"key": "a", "dataType": "text", "id": "00000000-0000-0000-0000-00000000000A"},
        ],
    }
    created = await http.post(sinks, json=body)
    assert (created.status_code, created.headers["Location"]) == (201, f"{sinks}/{_ID}")
    record = created.json()
    assert record["label"] == "Mass budget"
    assert record["tags"] == "a, b,,a"
    assert record["icon"] == {"source": "DevIcon", "name": "scale", "metadata": {"size": 1.1}}
    assert (record["visibleId"], record["serial"]) == ("SNK-1", 1)
    assert [(entry["key"], entry["value"], entry["dataType"]) for entry in record["entries"]] == [
        ("z", "0.10", "scalar"),
        ("a", None, "text"),
    ]
    assert record["entries"][1]["id"] == "00000000-0000-0000-0000-00000000000a"
    assert {entry["dataSinkId"] for entry in record["entries"]} == {_ID}
    assert all(_STAMP.fullmatch(record[name]) for name in ("createdAt", "updatedAt"))
    read = await http.get(f"{sinks}/{_ID}")
    assert sorted(read.json().pop("entries"), key=str) == sorted(record.pop("entries"), key=str)


async def test_every_documented_member_is_present_and_null_if_unset(http: httpx.AsyncClient, sinks: str) -> None:
    # contract G4
    record = (await http.post(sinks, json={"label": "x", "icon": None})).json()
    assert set(record) == {
        "id",
        "workspaceId",
        "label",
        "description",
        "tags",
        "icon",
        "visibleId",
        "serial",
        "entries",
        "createdAt",
        "updatedAt",
        "createdBy",
        "updatedBy",
    }
    assert (record["description"], record["tags"], record["icon"], record["entries"]) == (None, None, None, [])


async def test_an_invalid_create_body_is_400_and_nothing_is_stored(http: httpx.AsyncClient, sinks: str) -> None:
    # contract S1, S8
    for body, code, pointer in (
        ({}, "required", "/label"),
        ({"label": None}, "required", "/label"),
        ({"label": "x", "id": "1"}, "not_a_uuid", "/id"),
        ({"label": "x", "description": "d" * 10_001}, "too_long", "/description"),
        ({"label": "x", "tags": ["a"]}, "wrong_type", "/tags"),
        ({"label": "x", "icon": 7}, "wrong_type", "/icon"),
        ({"label": "x", "icon": {"name": 7}}, "wrong_type", "/icon/name"),
        ({"label": "x", "icon": {"metadata": {"t": "m" * 4_096}}}, "too_long", "/icon"),
        ({"label": "x", "icon": {"metadata": _nested(17)}}, "too_deep", "/icon/metadata"),
        ({"label": "x", "icon": json.dumps({"metadata": _nested(600)})}, "too_deep", "/icon/metadata"),
        ({"label": "x", "entries": {}}, "wrong_type", "/entries"),
        ({"label": "x", "entries": [{"key": "k"}]}, "required", "/entries/0/dataType"),
        ({"label": "x", "entries": [{"key": "k", "dataType": ""}]}, "bad_data_type", "/entries/0/dataType"),
        ({"label": "x", "entries": [{"key": "k", "dataType": "t"}] * 2}, "duplicate_key", "/entries/1/key"),
        ({"label": "x", "entries": [{"key": "k", "dataType": "t"}, 3]}, "wrong_type", "/entries/1"),
    ):
        response = await http.post(sinks, json=body)
        assert response.status_code == 400, body
        assert (response.json()["errors"][0]["code"], response.json()["errors"][0]["pointer"]) == (code, pointer), body
        assert (await http.get(f"{sinks}/list")).json() == [], body


async def test_the_metadata_of_an_icon_may_be_nested_sixteen_levels_deep(http: httpx.AsyncClient, sinks: str) -> None:
    # contract S3
    metadata = _nested(16)
    made = await http.post(sinks, json={"label": "x", "icon": {"metadata": metadata}})
    assert (made.status_code, made.json()["icon"]) == (201, {"metadata": metadata})


async def test_a_failed_create_leaves_no_gap_in_the_serials_and_a_deleted_sink_does(
    http: httpx.AsyncClient, sinks: str
) -> None:
    # contract S4
    first = (await http.post(sinks, json={"label": "a", "id": _ID})).json()
    refused = await http.post(sinks, json={"label": "b", "id": _ID})
    assert (refused.status_code, refused.json()["code"]) == (409, "id_in_use")
    entry = {"key": "k", "dataType": "t", "id": "00000000-0000-4000-8000-000000000001"}
    assert (await http.post(sinks, json={"label": "c", "entries": [entry]})).json()["serial"] == 2
    refused = await http.post(sinks, json={"label": "d", "entries": [entry]})
    assert (refused.status_code, refused.json()["code"]) == (409, "id_in_use")
    assert (await http.delete(f"{sinks}/{first['id']}")).status_code == 200
    assert (await http.post(sinks, json={"label": "e", "id": _ID})).json()["visibleId"] == "SNK-3"


async def test_a_sink_is_found_by_its_id_and_its_visible_id_in_any_case(http: httpx.AsyncClient, sinks: str) -> None:
    # contract S5
    record = (await http.post(sinks, json={"label": "a"})).json()
    for name in (record["id"], record["id"].upper(), "SNK-1", "snk-1"):
        assert (await http.get(f"{sinks}/{name}")).json() == record
    for name in ("SNK-2", "SNK-01", "XYZ-1", "SNK-0", "1", "lists"):
        assert (await http.get(f"{sinks}/{name}")).status_code == 404


async def test_the_word_list_in_any_case_is_never_a_sink(http: httpx.AsyncClient, sinks: str) -> None:
    # contract S6
    assert (await http.get(f"{sinks}/l%69st")).json() == []
    assert (await http.patch(f"{sinks}/list", json={"label": "x"})).status_code == 404
    assert (await http.delete(f"{sinks}/list")).status_code == 404


async def test_the_lists_have_every_sink_by_serial_with_and_without_entries(
    http: httpx.AsyncClient, sinks: str
) -> None:
    # contract G19
    for number in range(3):
        entries = [{"key": f"k{n}", "value": str(n), "dataType": "scalar"} for n in range(number)]
        await http.post(sinks, json={"label": f"S{number}", "entries": entries})
    whole, bare = await http.get(sinks), await http.get(f"{sinks}/list")
    assert [sink["serial"] for sink in whole.json()] == [1, 2, 3]
    records = whole.json()
    assert [len(sink.pop("entries")) for sink in records] == [0, 1, 2]
    assert bare.json() == records
    assert whole.headers["X-Total-Count"] == bare.headers["X-Total-Count"] == "3"
    page = await http.get(f"{sinks}?take=1&skip=1&sortOrder=DESC")
    assert [sink["serial"] for sink in page.json()] == [2]
    assert page.headers["X-Total-Count"] == "3"


async def test_a_long_sink_is_streamed_completely(http: httpx.AsyncClient, sinks: str, sink: str) -> None:
    items = [{"key": f"k{number:05d}", "value": str(number)} for number in range(4_321)]
    await http.post(f"{sink}/mass", json=items, headers={"Prefer": "return=minimal"})
    for response in (await http.get(sink), await http.get(sinks)):
        record = response.json() if isinstance(response.json(), dict) else response.json()[0]
        assert [entry["key"] for entry in record["entries"]] == [item["key"] for item in items]
        assert [entry["value"] for entry in record["entries"]] == [item["value"] for item in items]
    assert (await http.head(sink)).headers["ETag"] == (await http.get(sink)).headers["ETag"]


async def test_an_update_merges_and_returns_nothing(http: httpx.AsyncClient, sinks: str) -> None:
    # contract S3, S11
    created = (await http.post(sinks, json={"label": "a", "tags": "t", "description": "d"})).json()
    path = f"{sinks}/{created['id']}"
    body: dict[str, Any] = {"label": " b ", "description": None, "icon": '{"name":"scale"}', "serial": 9, "entries": []}
    response = await http.patch(path, json=body)
    assert (response.status_code, response.content, response.headers["Content-Length"]) == (200, b"", "0")
    assert "Content-Type" not in response.headers
    assert response.headers["X-Ignored-Fields"] == "entries,serial"
    record = (await http.get(path)).json()
    assert (record["label"], record["tags"], record["description"]) == ("b", "t", None)
    assert (record["icon"], record["serial"]) == ({"name": "scale"}, 1)


async def test_an_empty_update_changes_nothing_and_an_empty_body_is_400(http: httpx.AsyncClient, sink: str) -> None:
    # contract G10, S11
    before = await http.get(sink)
    assert (await http.patch(sink, json={})).status_code == 200
    assert (await http.get(sink)).headers["ETag"] == before.headers["ETag"]
    assert (await http.patch(sink, content=b"")).status_code == 400


async def test_if_match_applies_to_an_update_and_a_delete(http: httpx.AsyncClient, sink: str) -> None:
    # contract G17
    seen = (await http.get(sink)).headers["ETag"]
    assert (await http.get(sink, headers={"If-None-Match": f"{seen}, W/{seen}"})).status_code == 304
    assert (await http.patch(sink, json={"label": "b"}, headers={"If-Match": seen})).status_code == 200
    for method in ("PATCH", "DELETE"):
        late = await http.request(method, sink, json={"label": "c"}, headers={"If-Match": seen})
        assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert (await http.get(sink)).json()["label"] == "b"
    assert (await http.get(sink, headers={"If-None-Match": seen})).status_code == 200
    assert (await http.delete(sink, headers={"If-Match": "*"})).status_code == 200


async def test_deleting_a_sink_deletes_its_entries_and_the_second_delete_is_404(
    http: httpx.AsyncClient, sink: str
) -> None:
    # contract G25, S13
    await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})
    gone = await http.delete(sink)
    assert (gone.status_code, gone.content, gone.headers["Content-Length"]) == (200, b"", "0")
    assert (await http.delete(sink)).status_code == 404
    assert (await http.get(f"{sink}/k")).status_code == 404


@pytest.mark.parametrize("client_id", [None, "", "two words", "é", "x" * 129])
async def test_operations_that_require_a_client_id_are_400_without_a_valid_one(
    http: httpx.AsyncClient, sinks: str, sink: str, client_id: str | None
) -> None:
    # contract A8
    await http.post(f"{sink}/mass", json={"key": "k", "value": "v"})
    del http.headers["ClientId"]
    headers = [] if client_id is None else [(b"ClientId", client_id.encode("latin-1"))]
    for method, path in (
        ("POST", sinks),
        ("PATCH", sink),
        ("DELETE", sink),
        ("POST", sink),
        ("PATCH", f"{sink}/k"),
        ("DELETE", f"{sink}/k"),
    ):
        body = {"label": "x", "key": "n", "dataType": "t"}
        response = await http.request(method, path, json=body, headers=headers)
        assert (response.status_code, response.headers["X-Error-Code"]) == (400, "bad_client_id")
    if client_id is None:
        assert (await http.post(f"{sink}/mass", json={"key": "k", "value": "w"})).status_code == 200


@pytest.mark.both_databases
async def test_quotas_are_409_and_change_nothing(settings: WorkspacedSettings, make_key: Any) -> None:
    # contract G35
    tight = WorkspacedSettings(
        data=settings.data, postgres=settings.postgres, limits=Limits(sinks_per_workspace=2, entries_per_sink=2)
    )
    async with running(tight) as app, api_client(app, make_key()) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        sinks = f"/v1/workspace/{workspace}/data-sink"
        for label in "ab":
            assert (await http.post(sinks, json={"label": label})).status_code == 201
        full = await http.post(sinks, json={"label": "c"})
        assert (full.status_code, full.json()["code"]) == (409, "quota_exceeded")
        sink = f"{sinks}/SNK-1"
        items = [{"key": key, "value": "v"} for key in "klm"]
        assert (await http.post(f"{sink}/mass", json=items)).json()["code"] == "quota_exceeded"
        assert (await http.get(sink)).json()["entries"] == []
        assert (await http.post(f"{sink}/mass", json=items[:2])).status_code == 200
        assert (await http.post(sink, json={"key": "n", "dataType": "t"})).json()["code"] == "quota_exceeded"
        assert (await http.post(f"{sink}/mass", json=items[2])).json()["code"] == "quota_exceeded"
        assert (await http.post(f"{sink}/mass", json=items[1])).status_code == 200
        swap = [{"key": "k", "delete": True}, items[2]]
        assert (await http.post(f"{sink}/mass", json=swap)).status_code == 200
        await http.delete(f"{sinks}/SNK-2")
        assert (await http.post(sinks, json={"label": "c"})).status_code == 201


@pytest.mark.both_databases
async def test_concurrent_creates_get_serials_without_gap_or_duplicate(http: httpx.AsyncClient, sinks: str) -> None:
    # contract S4
    responses = await asyncio.gather(*(http.post(sinks, json={"label": "x"}) for _ in range(60)))
    assert sorted(response.json()["serial"] for response in responses) == list(range(1, 61))


async def test_every_response_below_the_sinks_announces_bulk_and_no_other_does(
    http: httpx.AsyncClient, sinks: str, sink: str
) -> None:
    # contract M9
    expected = "max-items=5000, max-bytes=16777216"
    for method, path in (
        ("GET", sinks),
        ("GET", f"{sinks}/list"),
        ("GET", f"{sinks}/SNK-99"),
        ("PUT", sink),
        ("OPTIONS", sink),
        ("PATCH", sink),
        ("GET", f"{sinks}/a/b/c"),
        ("POST", f"{sink}/mass"),
        ("HEAD", sink),
        ("DELETE", sink),
    ):
        assert (await http.request(method, path)).headers["X-Bulk-Mass"] == expected, (method, path)
    del http.headers["x-api-key"]
    assert (await http.get(sinks)).headers["X-Bulk-Mass"] == expected
    assert "X-Bulk-Mass" not in (await http.get("/v1/workspace")).headers


def _nested(levels: int) -> dict[str, Any]:
    return {"a": _nested(levels - 1)} if levels > 1 else {"a": 1}
