"""Operations (contract DS11): the document's single form, the bulk forms, and their effects on existing entries."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from ingestd.client import AsyncClient
from ingestd.client.records import EntryChange, Sink

_ID = "123e4567-e89b-12d3-a456-426614174000"
_MINIMAL = {"Prefer": "return=minimal"}


async def _values(http: httpx.AsyncClient, sink: str) -> dict[str, str]:
    return {entry["key"]: entry["value"] for entry in (await http.get(sink)).json()["entries"]}


async def test_the_single_form_creates_and_then_replaces(http: httpx.AsyncClient, sink: str) -> None:
    # contract M2
    created = await http.post(f"{sink}/mass", json={"key": "m", "value": "15 kg"})
    assert created.status_code == 200
    assert set(created.json()) == {
        "id",
        "key",
        "dataSinkId",
        "value",
        "dataType",
        "createdAt",
        "updatedAt",
        "createdBy",
        "updatedBy",
    }
    assert created.json()["dataType"] == "scalar"
    replaced = await http.post(f"{sink}/mass", json={"key": "m", "value": "", "dataType": "text"})
    assert (replaced.json()["id"], replaced.json()["value"], replaced.json()["dataType"]) == (
        created.json()["id"],
        "",
        "text",
    )
    kept = await http.post(f"{sink}/mass", json={"key": "m", "value": "16 kg"})
    assert kept.json()["dataType"] == "text"


async def test_both_interpretations_of_the_last_segment_are_served(http: httpx.AsyncClient, sink: str) -> None:
    # contract DS12, M1
    fixed = await http.post(f"{sink}/mass", json={"key": "mass", "value": "1"})
    assert fixed.json()["key"] == "mass"
    by_key = await http.post(f"{sink}/a%2Fb", json={"value": "2"})
    assert (by_key.status_code, by_key.json()["key"]) == (200, "a/b")
    assert (await http.post(f"{sink}/a%2Fb", json={"key": "a/b", "value": "3"})).json()["value"] == "3"
    assert (await http.post(f"{sink}/a%2Fb", json={"key": "x", "value": "3"})).status_code == 400
    assert (await http.post(f"{sink}/a%2Fb", json=[{"key": "a/b", "value": "3"}])).status_code == 400
    assert await _values(http, sink) == {"mass": "1", "a/b": "3"}


async def test_create_false_is_404_for_an_unknown_key(http: httpx.AsyncClient, sink: str) -> None:
    # contract M2
    assert (await http.post(f"{sink}/mass?create=false", json={"key": "k", "value": "v"})).status_code == 404
    items = [{"key": "k", "value": "v"}, {"key": "n", "value": "v"}]
    await http.post(f"{sink}/mass", json=items[:1])
    assert (await http.post(f"{sink}/mass?create=false", json=items)).status_code == 404
    partly = await http.post(f"{sink}/mass?create=false&partial=true", json=items)
    assert [result["status"] for result in partly.json()["results"]] == [200, 404]
    assert (await http.post(f"{sink}/mass?create=maybe", json=items)).status_code == 400
    assert await _values(http, sink) == {"k": "v"}


async def test_an_invalid_body_is_400_and_writes_nothing(http: httpx.AsyncClient, sink: str) -> None:
    bodies: list[Any] = [
        {"key": "k"},
        {"value": "v"},
        {"key": "k", "value": None},
        {"key": "k", "value": 1},
        {"key": "k", "value": "v", "dataType": "not a type"},
        {"key": "k", "value": "v", "delete": True},
        {"key": "k", "value": "v", "observedAt": "yesterday"},
        {"key": "k", "entries": [{"key": "k", "value": "v"}]},
        {"entries": {"key": "k"}},
        {"entries": []},
        [],
        ["k"],
        "k",
        [{"key": "k", "value": "v"}, {"key": "l"}],
    ]
    for body in bodies:
        response = await http.post(f"{sink}/mass", json=body)
        assert (response.status_code, response.json()) == (400, {"error": "Invalid request"}), body
        assert await _values(http, sink) == {}, body


@pytest.mark.both_databases
async def test_a_list_returns_a_list_in_its_order_and_an_object_returns_an_object(
    http: httpx.AsyncClient, sink: str
) -> None:
    # contract M3
    items = [{"key": key, "value": key.upper()} for key in ("z", "ö", "a", "a/b")]
    listed = (await http.post(f"{sink}/mass", json=items)).json()
    assert [(entry["key"], entry["value"]) for entry in listed] == [(item["key"], item["value"]) for item in items]
    wrapped = (await http.post(f"{sink}/mass", json={"entries": items})).json()
    assert [entry["id"] for entry in wrapped["entries"]] == [entry["id"] for entry in listed]


async def test_one_invalid_item_rejects_all_and_has_its_pointer(http: httpx.AsyncClient, sink: str) -> None:
    # contract M3
    items = [{"key": f"k{n}", "value": "v"} for n in range(5)]
    items[3]["key"] = " blank "
    response = await http.post(f"{sink}/mass", json=items, headers={"Accept": "application/problem+json"})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (400, "/3/key")
    wrapped = await http.post(f"{sink}/mass", json={"entries": items}, headers={"Accept": "application/problem+json"})
    assert wrapped.json()["errors"][0]["pointer"] == "/entries/3/key"
    assert await _values(http, sink) == {}


@pytest.mark.both_databases
async def test_partial_writes_the_valid_items_and_reports_the_invalid_ones(http: httpx.AsyncClient, sink: str) -> None:
    # contract M10
    await http.post(f"{sink}/mass", json={"key": "taken", "value": "v", "id": _ID})
    items: list[Any] = [
        {"key": "a", "value": "1"},
        {"key": ".", "value": "2"},
        {"key": "b", "value": "3", "id": _ID},
        {"key": "c", "value": 4},
        {"key": "a", "value": "5"},
        {"key": "taken", "delete": True},
    ]
    response = (await http.post(f"{sink}/mass?partial=true", json=items)).json()
    assert (response["succeeded"], response["failed"]) == (3, 3)
    assert [(result["index"], result["status"]) for result in response["results"]] == [
        (0, 200),
        (1, 400),
        (2, 409),
        (3, 400),
        (4, 200),
        (5, 200),
    ]
    assert [response["results"][n]["entry"] for n in (0, 5)] == [response["results"][4]["entry"], None]
    assert response["results"][2]["error"]["code"] == "id_in_use"
    assert await _values(http, sink) == {"a": "5"}
    shorter = (await http.post(f"{sink}/mass?partial=true", json=items[:2], headers=_MINIMAL)).json()
    assert (shorter["accepted"], shorter["unchanged"], shorter["updated"], shorter["failed"]) == (1, 0, 1, 1)
    assert [result["index"] for result in shorter["results"]] == [1]
    nothing = (await http.post(f"{sink}/mass?partial=true", json=items[1:2])).json()
    assert (nothing["succeeded"], nothing["failed"]) == (0, 1)


@pytest.mark.both_databases
async def test_a_repeated_key_takes_its_last_value_and_both_results_show_it(
    client: AsyncClient, mass_budget: Sink
) -> None:
    # contract M3, M8
    items = [
        EntryChange(key="a", value="1", data_type="text"),
        EntryChange(key="b", value="2"),
        EntryChange(key="a", delete=True),
        EntryChange(key="a", value="3"),
        EntryChange(key="b", delete=True),
    ]
    response = await client.mass_update(mass_budget.workspace_id, mass_budget.id, items)
    assert [entry and entry.value for entry in response] == ["3", None, "3", "3", None]
    whole = await client.get_sink(mass_budget.workspace_id, mass_budget.id)
    assert [(entry.key, entry.value, entry.data_type) for entry in whole.entries] == [("a", "3", "scalar")]


@pytest.mark.both_databases
async def test_a_minimal_response_has_the_counts(http: httpx.AsyncClient, sink: str) -> None:
    # contract M8
    async def sent(*items: dict[str, Any]) -> list[int]:
        response = await http.post(f"{sink}/mass", json=list(items), headers=_MINIMAL)
        assert response.headers["Preference-Applied"] == "return=minimal"
        return list(response.json().values())

    assert list((await http.post(f"{sink}/mass", json=[{"key": "x", "value": ""}], headers=_MINIMAL)).json()) == [
        "accepted",
        "created",
        "updated",
        "unchanged",
        "deleted",
    ]
    assert await sent({"key": "a", "value": "1"}, {"key": "b", "value": "2"}) == [2, 2, 0, 0, 0]
    assert await sent({"key": "a", "value": "1"}, {"key": "b", "value": "3"}, {"key": "c", "value": "4"}) == [
        3,
        1,
        1,
        1,
        0,
    ]
    assert await sent({"key": "a", "value": "1", "dataType": "text"}) == [1, 0, 1, 0, 0]
    assert await sent({"key": "a", "delete": True}, {"key": "absent", "delete": True}) == [2, 0, 0, 0, 1]
    assert await sent({"key": "n", "value": "1"}, {"key": "n", "value": "1"}, {"key": "n", "delete": True}) == [
        3,
        1,
        0,
        1,
        1,
    ]
    assert await _values(http, sink) == {"x": "", "b": "3", "c": "4"}


async def test_writing_an_unchanged_value_updates_its_time(client: AsyncClient, mass_budget: Sink) -> None:
    # contract M5
    first, again = [
        await client.mass_update_entry(mass_budget.workspace_id, mass_budget.id, key="k", value="1") for _ in range(2)
    ]
    assert again.etag != first.etag
    assert again.updated_at >= first.updated_at


@pytest.mark.both_databases
async def test_a_value_older_than_the_stored_one_changes_nothing(http: httpx.AsyncClient, sink: str) -> None:
    # contract M6
    noon = {"key": "k", "value": "noon", "observedAt": "2026-05-01T12:00:00.5Z"}
    late = {"key": "k", "value": "late", "observedAt": "2026-05-01T13:59:59+02:00"}
    same = {"key": "k", "value": "same", "observedAt": "2026-05-01T14:00:00.500+02:00"}
    written = await http.post(f"{sink}/mass", json=noon)
    assert "X-Stale-Write" not in written.headers
    ignored = await http.post(f"{sink}/mass", json=late)
    assert (ignored.status_code, ignored.headers["X-Stale-Write"]) == (200, "ignored")
    assert (ignored.json(), ignored.headers["ETag"]) == (written.json(), written.headers["ETag"])
    before = (await http.get(sink)).headers["ETag"]
    bulk = await http.post(f"{sink}/mass", json=[late, {**late, "delete": True}], headers=_MINIMAL)
    assert bulk.headers["X-Stale-Write"] == "ignored"
    assert bulk.json() == {"accepted": 2, "created": 0, "updated": 0, "unchanged": 2, "deleted": 0}
    assert (await http.get(sink)).headers["ETag"] == before
    assert (await http.post(f"{sink}/mass", json=[same])).json()[0]["value"] == "same"
    assert (await http.post(f"{sink}/mass", json={"key": "k", "value": "now"})).json()["value"] == "now"
    assert (await http.post(f"{sink}/mass", json=late)).headers["X-Stale-Write"] == "ignored"
    assert (await http.post(f"{sink}/mass", json=[{**same, "delete": True}])).json() == [None]


@pytest.mark.both_databases
async def test_an_id_is_accepted_for_a_new_entry_only(http: httpx.AsyncClient, sink: str) -> None:
    # contract M3
    first = (await http.post(f"{sink}/mass", json={"key": "k", "value": "1"})).json()
    for body in ({"key": "k", "value": "2", "id": _ID}, [{"key": "k", "value": "3", "id": _ID}]):
        response = (await http.post(f"{sink}/mass", json=body)).json()
        assert (response[0] if isinstance(response, list) else response)["id"] == first["id"]
    twice = [{"key": "a", "value": "1", "id": _ID}, {"key": "b", "value": "1", "id": _ID.upper()}]
    refused = await http.post(f"{sink}/mass", json=twice)
    assert (refused.status_code, refused.json()["code"]) == (409, "id_in_use")
    assert (await http.post(f"{sink}/mass", json=twice[:1])).json()[0]["id"] == _ID
    assert (await http.post(f"{sink}/mass", json=twice[:1])).status_code == 200


async def test_unknown_members_are_ignored_and_named(http: httpx.AsyncClient, sink: str) -> None:
    # contract G5
    bulk = await http.post(f"{sink}/mass", json=[{"key": "k", "value": "1", "unit": "kg"}])
    assert (bulk.status_code, bulk.headers["X-Ignored-Fields"]) == (200, "unit")
    single = await http.post(f"{sink}/mass", json={"key": "k", "value": "1", "unit": "kg"})
    assert single.headers["X-Ignored-Fields"] == "unit"


async def test_five_thousand_items_are_accepted_and_one_more_is_rejected(http: httpx.AsyncClient, sink: str) -> None:
    # contract M3
    items = [{"key": f"k{n}", "value": "v"} for n in range(5_001)]
    refused = await http.post(f"{sink}/mass", json=items)
    assert (refused.status_code, refused.headers["X-Error-Code"]) == (400, "too_many_items")
    taken = await http.post(f"{sink}/mass", json=items[:-1], headers=_MINIMAL)
    assert taken.json()["created"] == 5_000
    assert (await http.get(sink)).headers["ETag"] == '"2"'


async def test_a_body_above_16_mib_is_413_and_one_below_is_accepted(http: httpx.AsyncClient, sink: str) -> None:
    # contract G9
    items = [{"key": f"k{n}", "value": "v" * 65_536} for n in range(257)]
    refused = await http.post(f"{sink}/mass", json=items)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert (await http.post(f"{sink}/mass", json=items[:255], headers=_MINIMAL)).json()["created"] == 255


async def test_a_rejected_request_in_the_same_commit_does_not_affect_the_others(
    http: httpx.AsyncClient, sink: str
) -> None:
    await http.post(sink, json={"key": "taken", "dataType": "t"})

    async def create(number: int) -> int:
        key = "taken" if number % 3 == 0 else f"k{number}"
        return (await http.post(sink, json={"key": key, "value": str(number), "dataType": "t"})).status_code

    statuses = await asyncio.gather(*(create(number) for number in range(90)))
    assert statuses == [409 if number % 3 == 0 else 201 for number in range(90)]
    values = await _values(http, sink)
    assert {key for key in values if key != "taken"} == {f"k{n}" for n in range(90) if n % 3}
