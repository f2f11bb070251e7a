"""The origins of values: sent once for many entries, kept with each value and its history, and dropped when nothing names them.

This tests contract M12.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from ingestd.wire.origin import HEADER, OriginLimits, parse_origin_limits
from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_entry_history import PastClock
from tests.support.api_client import api_client
from workspaced.app import running
from workspaced.resources.data_sinks.origin_store import UNCHECKED_MS
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact

RUN: dict[str, Any] = {
    "source": "bench",
    "file": "run-0001.csv",
    "run": "20261127-1",
    "pipeline": "bench-a3",
    "link": "https://ingestd.example/pipelines/bench-a3",
}
OTHER = {"source": "script"}
NO_PARTS = {"file": None, "run": None, "pipeline": None, "link": None}


async def origins_of(http: httpx.AsyncClient, sink: str) -> dict[str, Any]:
    response = await http.get(sink, params={"origin": "true"})
    return {entry["key"]: entry["origin"] for entry in response.json()["entries"]}


def items(*keys: str, value: str = "1") -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key in keys]


def history_of(sink: str) -> str:
    return sink.replace("/data-sink/", "/data-sink-history/")


async def keep_history(http: httpx.AsyncClient, sink: str) -> None:
    assert (await http.patch(history_of(sink), json={"changes": 10})).is_success


async def send(http: httpx.AsyncClient, sink: str, body: Any, **query: str) -> httpx.Response:
    response = await http.post(f"{sink}/mass", json=body, params=query)
    assert response.is_success, response.text
    return response


async def test_the_announcement_can_be_read_by_a_client(http: httpx.AsyncClient, sink: str) -> None:
    announced = (await http.get(sink)).headers[HEADER]
    assert parse_origin_limits(announced) == OriginLimits(max_origins=1_000, max_text=255)
    assert parse_origin_limits(None) is parse_origin_limits("yes") is None
    assert HEADER not in (await http.get("/v1/workspace")).headers


@pytest.mark.both_databases
async def test_entries_share_origins_and_differ_by_row(http: httpx.AsyncClient, sink: str) -> None:
    first = {**RUN, "count": 3, "rowSteps": [7, -5.0, 1]}
    second = {**OTHER, "count": 1}
    written = await send(http, sink, {"entries": items("b", "a", "c", "d", "e"), "origins": [first, second]})
    assert "origin" not in written.json()["entries"][0]
    assert await origins_of(http, sink) == {
        "a": {**RUN, "row": 2},
        "b": {**RUN, "row": 7},
        "c": {**RUN, "row": 3},
        "d": {**OTHER, **NO_PARTS, "row": None},
        "e": None,
    }
    await send(
        http, sink, {"entries": items("a", "b"), "origins": [{**RUN, "count": 1, "rowSteps": [9]}, {**RUN, "count": 1}]}
    )
    found = await origins_of(http, sink)
    assert [found[key] for key in "ab"] == [{**RUN, "row": 9}, {**RUN, "row": None}]
    await send(http, sink, {"entries": items("a", "b"), "origins": [{**first, "count": 2, "rowSteps": [2, 5]}]})
    assert "origin" not in (await http.get(f"{sink}/a")).json()
    assert (await http.get(f"{sink}/a", params={"origin": "true"})).json()["origin"] == {**RUN, "row": 2}
    assert (await http.get(sink, params={"origin": "maybe"})).status_code == 400
    # With the other readers: an item that has an observation or a mistake, and a key that occurs twice.
    body = {
        "entries": [
            *items("a"),
            {"key": "b", "value": "2", "observedAt": "2026-05-01T12:00:00Z"},
            {"key": ""},
            *items("c", "c"),
        ],
        "origins": [{**OTHER, "count": 5, "rowSteps": [1, 1, 1, 1, 1]}],
    }
    await send(http, sink, body, partial="true")
    found = await origins_of(http, sink)
    assert [found[key]["row"] for key in "abc"] == [1, 2, 5]
    assert {found[key]["source"] for key in "abcd"} == {"script"}


@pytest.mark.both_databases
async def test_each_single_write_has_its_origin_and_an_edit_has_none(
    http: httpx.AsyncClient, sinks: str, sink: str
) -> None:
    origin = {**RUN, "row": 2}
    await send(http, sink, {"key": "a", "value": "1", "origin": origin})
    assert (
        await http.post(sink, json={"key": "b", "dataType": "scalar", "value": "1", "origin": origin})
    ).status_code == 201
    assert (await http.post(f"{sink}/c", json={"value": "1", "origin": OTHER})).is_success
    together = [
        send(http, sink, {"key": f"k{row}", "value": "1", "origin": {**RUN, "row": row}}) for row in range(1, 9)
    ]
    await asyncio.gather(*together, send(http, sink, {"key": "none", "value": "1"}))
    found = await origins_of(http, sink)
    assert [found["a"], found["b"], found["none"]] == [origin, origin, None]
    assert found["c"] == {**OTHER, **NO_PARTS, "row": None}
    assert [found[f"k{row}"]["row"] for row in range(1, 9)] == [*range(1, 9)]

    assert (await http.patch(f"{sink}/a", json={"value": "2"})).is_success
    await send(http, sink, {"key": "b", "value": "1"})
    found = await origins_of(http, sink)
    assert [found["a"], found["b"]] == [None, None]

    new = {
        "label": "New",
        "entries": [{"key": "x", "dataType": "scalar"}],
        "origins": [{**RUN, "count": 1, "rowSteps": [2]}],
    }
    made = await http.post(sinks, json=new)
    assert await origins_of(http, f"{sinks}/{made.json()['id']}") == {"x": origin}


@pytest.mark.both_databases
async def test_a_former_value_keeps_its_origin(http: httpx.AsyncClient, sink: str) -> None:
    await keep_history(http, sink)
    for number, value in enumerate("123", start=1):
        origin = {**RUN, "run": f"r{number}", "count": 1, "rowSteps": [number]}
        await send(http, sink, {"entries": items("a", value=value), "origins": [origin]})
    assert (await http.patch(f"{sink}/a", json={"value": "4"})).is_success
    assert (await http.delete(f"{sink}/a")).is_success
    history = f"{history_of(sink)}/entry/a"
    assert "origin" not in (await http.get(history)).json()[0]["before"]
    changes = (await http.get(history, params={"origin": "true", "take": "2"})).json()
    changes += (await http.get(history, params={"origin": "true"})).json()[2:]
    sides = [[change[side] and change[side]["origin"] for side in ("before", "after")] for change in changes]
    r1, r2, r3 = ({**RUN, "run": f"r{number}", "row": number} for number in (1, 2, 3))
    assert sides == [[None, None], [r3, None], [r2, r3], [r1, r2], [None, r1]]


@pytest.mark.parametrize(
    ("origin", "code", "pointer"),
    [
        ({}, "required", "/origins/0/source"),
        ({"source": "x" * 256}, "too_long", "/origins/0/source"),
        ({"source": "a\nb"}, "control_character", "/origins/0/source"),
        ({"source": "x", "link": "javascript:alert(1)"}, "bad_link", "/origins/0/link"),
        ({"source": "x", "rowSteps": [-1]}, "out_of_range", "/origins/0/rowSteps"),
        ({"source": "x", "rowSteps": [2**32]}, "out_of_range", "/origins/0/rowSteps"),
        ({"source": "x", "rowSteps": [1, 1]}, "out_of_range", "/origins/0/rowSteps"),
        ({"source": "x", "rowSteps": "2-3"}, "wrong_type", "/origins/0/rowSteps"),
        ({"source": "x", "count": 3}, "out_of_range", "/origins"),
    ],
)
async def test_an_origin_with_a_mistake_writes_nothing(
    http: httpx.AsyncClient, sink: str, origin: dict[str, Any], code: str, pointer: str
) -> None:
    http.headers["Accept"] = "application/problem+json"
    body = {"entries": items("a", "b"), "origins": [{"count": 1, **origin}]}
    refused = await http.post(f"{sink}/mass", json=body)
    assert refused.status_code == 400
    assert [(error["code"], error["pointer"]) for error in refused.json()["errors"]] == [(code, pointer)]
    assert await origins_of(http, sink) == {}


async def test_the_audit_log_names_the_origins_of_a_request(http: httpx.AsyncClient, sink: str) -> None:
    await send(http, sink, {"key": "a", "value": "1", "origin": {**RUN, "row": 2}})
    many = [{"source": f"s{number}", "count": 1} for number in range(5)]
    await send(http, sink, {"entries": items(*"abcde"), "origins": many})
    await send(http, sink, {"key": "a", "value": "1"})
    rows = (await http.get("/v1/audit-log", params={"action": "data_sink.*", "take": "3"})).json()
    assert [row.get("origin") for row in rows] == [
        None,
        "from s0; from s1; from s2; and 2 more",
        "from run-0001.csv row 2, pipeline bench-a3",
    ]


@pytest.mark.both_databases
async def test_only_origins_that_nothing_names_are_dropped(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    clock = PastClock()
    async with running(settings, clock=clock) as app, api_client(app, make_key()) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "W"})).json()["id"]
        sinks = f"/v1/workspace/{workspace}/data-sink"
        sink = f"{sinks}/{(await http.post(sinks, json={'label': 'S'})).json()['id']}"
        await keep_history(http, sink)
        for source in ("former", "unchanged", "present"):
            body = {"entries": items("a", value=source[0]), "origins": [{"source": source, "count": 1}]}
            await send(http, sink, body)
        await send(http, sink, {"key": "b", "value": "1", "origin": {"source": "replaced"}})
        await send(http, sink, {"key": "b", "value": "1", "origin": {"source": "present"}})
        await send(http, sink, {"key": "c", "value": "1", "origin": {"source": "edited"}})
        await send(http, sink, {"key": "c", "value": "1"})

        def stored() -> set[str]:
            return transact(settings.database, lambda tx: {row[0] for row in tx.all("SELECT source FROM entry_origin")})

        await app.run_maintenance()
        assert stored() == {"former", "unchanged", "present", "replaced", "edited"}
        clock.advance(UNCHECKED_MS + 1)
        await app.run_maintenance()
        assert stored() == {"former", "unchanged", "present", "edited"}
        assert (await origins_of(http, sink))["b"]["source"] == "present"
