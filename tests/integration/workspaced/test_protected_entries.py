"""A sink that protects entries which a pipeline feeds, and what is known of the pipeline after an edit.

This tests contract M13.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_origins import RUN, items, origins_of, send
from tests.support.api_client import api_client
from workspaced.app import Application
from workspaced.storage.sqlite import SqliteTransaction

FED = {"entries": items("a", "b"), "origins": [{**RUN, "count": 2, "rowSteps": [2, 1]}]}
SENTENCE = (
    "The entry 'a' was written from run-0001.csv row 2, pipeline bench-a3, and this data sink protects such entries. Change the "
    "value in its source, or switch the setting protectFedEntries of the data sink off."
)


async def protect(http: httpx.AsyncClient, sink: str, *, on: bool = True) -> None:
    assert (await http.patch(sink, json={"protectFedEntries": on})).status_code == 200


async def values_of(http: httpx.AsyncClient, sink: str) -> dict[str, str]:
    return {entry["key"]: entry["value"] for entry in (await http.get(sink)).json()["entries"]}


@pytest.mark.both_databases
async def test_an_edited_entry_is_still_known_to_be_fed(http: httpx.AsyncClient, sink: str) -> None:
    fed = {"entries": items(*"abcde"), "origins": [{**RUN, "count": 5, "rowSteps": [2, 1, 1, 1, 1]}]}
    await send(http, sink, fed)
    for value in "23":  # the second edit meets an entry that a person has edited
        assert (await http.patch(f"{sink}/a", json={"value": value})).is_success
        await send(http, sink, {"key": "b", "value": value})
        await asyncio.gather(*(send(http, sink, {"key": key, "value": value}) for key in "cf"))
        await send(http, sink, [*items("d", value=value), *items("e")])
    found = {entry["key"]: entry for entry in (await http.get(sink, params={"origin": "true"})).json()["entries"]}
    assert all(found[key]["origin"] is None for key in "abcdef")
    assert {key: found[key]["formerOrigin"] for key in "abcde"} == {
        key: {**RUN, "row": row} for row, key in enumerate("abcde", start=2)
    }
    assert "formerOrigin" not in found["f"]
    await send(http, sink, FED)
    assert (await origins_of(http, sink))["a"] == {**RUN, "row": 2}
    assert "formerOrigin" not in (await http.get(f"{sink}/a", params={"origin": "true"})).json()
    assert not {"origin", "formerOrigin"} & (await http.get(f"{sink}/b")).json().keys()


@pytest.mark.both_databases
async def test_the_setting_is_a_member_that_only_clients_who_ask_for_it_see(
    app: Application, http: httpx.AsyncClient, sinks: str, sink: str, make_key: MakeKey
) -> None:
    made = await http.post(sinks, json={"label": "New", "protectFedEntries": True})
    assert made.status_code == 201
    of_interface = made.json().keys()
    assert "protectFedEntries" not in of_interface
    address = f"{sinks}/{made.json()['id']}"
    assert (await http.get(address, params={"origin": "true"})).json()["protectFedEntries"] is True
    assert (await http.get(address)).json().keys() == of_interface
    for one in (await http.get(sinks)).json():
        assert one.keys() == of_interface
    assert (await http.get(sink, params={"origin": "true"})).json()["protectFedEntries"] is False
    assert (await http.patch(sink, json={"protectFedEntries": "yes"})).status_code == 400

    async with api_client(app, make_key("pusher", role="pusher")) as pusher:
        assert (await pusher.patch(sink, json={"protectFedEntries": True})).status_code == 403
    async with api_client(app, make_key("editor", role="editor")) as editor:
        await protect(editor, sink)
        assert (await editor.patch(sink, json={"protectFedEntries": False, "label": "Other"})).is_success
        assert (await editor.patch(sink, json={"label": "Third"})).is_success
    rows = (await http.get("/v1/audit-log", params={"action": "data_sink.updated", "take": "3"})).json()
    assert [row["changed"] for row in rows] == [["label"], ["label", "protectFedEntries"], ["protectFedEntries"]]
    assert {row["principal"] for row in rows} == {"editor"}


@pytest.mark.parametrize("edited_before", [False, True])
async def test_each_write_without_an_origin_is_refused_and_changes_nothing(
    http: httpx.AsyncClient, sink: str, edited_before: bool
) -> None:
    http.headers["Accept"] = "application/problem+json"
    await send(http, sink, FED)
    if edited_before:
        await send(http, sink, items("a", "b", value="0"))
    await send(http, sink, items("own"))
    await protect(http, sink)
    before = (await http.get(sink, params={"origin": "true"})).json()
    refused = [
        await http.patch(f"{sink}/a", json={"value": "2"}),
        await http.patch(f"{sink}/a", json={"dataType": "text"}),
        await http.delete(f"{sink}/a"),
        await http.post(f"{sink}/mass", json={"key": "a", "value": "2"}),
        await http.post(f"{sink}/a", json={"value": "2"}),
        await http.post(f"{sink}/mass", json=[*items("own", value="2"), *items("a", value="2")]),
        await http.post(f"{sink}/mass", json={"entries": [{"key": "a", "delete": True}]}),
    ]
    assert [(one.status_code, one.json()["code"], one.json()["detail"]) for one in refused] == (
        [(422, "entry_protected", SENTENCE)] * len(refused)
    )
    body = [*items("own", value="2"), *items("a", "b", value="2")]
    looked = (await send(http, sink, body, dryRun="true")).json()["results"]
    assert [one.get("effect") or one["error"]["code"] for one in looked] == ["updated", *["entry_protected"] * 2]
    assert (await http.get(sink, params={"origin": "true"})).json() == before

    partial = (await send(http, sink, body, partial="true")).json()
    assert [one["status"] for one in partial["results"]] == [200, 422, 422]
    assert partial["results"][1]["error"]["detail"] == SENTENCE
    assert (await values_of(http, sink)) == {**{one["key"]: one["value"] for one in before["entries"]}, "own": "2"}

    await protect(http, sink, on=False)
    assert (await http.patch(f"{sink}/a", json={"value": "2"})).is_success


async def test_pipelines_and_other_entries_are_not_restricted(http: httpx.AsyncClient, sink: str) -> None:
    await send(http, sink, {"entries": items("a", "b", "c"), "origins": [{**RUN, "count": 3}]})
    await send(http, sink, items("a", value="0"))
    await protect(http, sink)
    await send(http, sink, {"key": "a", "value": "2", "origin": RUN})
    await send(http, sink, {"entries": items("b", value="2"), "origins": [{**RUN, "count": 1}]})
    await send(http, sink, {"entries": [{"key": "c", "delete": True}], "origins": [{**RUN, "count": 1}]})
    assert await values_of(http, sink) == {"a": "2", "b": "2"}
    await send(http, sink, items("c", "own"))
    await send(http, sink, {"key": "own", "value": "2"})
    assert (await http.delete(f"{sink}/own")).is_success
    assert (await http.delete(f"{sink}/c")).is_success
    assert (await http.patch(f"{sink}/a", json={})).is_success
    assert (await http.patch(f"{sink}/a", json={"value": "2"})).is_success, "a write of an equal value is no edit"
    await send(http, sink, items("a", "b", value="2"))
    assert (await http.patch(sink, json={"label": "Other"})).is_success
    assert await values_of(http, sink) == {"a": "2", "b": "2"}
    assert (await http.delete(sink)).is_success


@pytest.mark.both_databases
async def test_concurrent_single_writes_are_refused_one_by_one(http: httpx.AsyncClient, sink: str) -> None:
    await send(http, sink, FED)
    await protect(http, sink)
    bodies: list[dict[str, Any]] = [{"key": key, "value": "2"} for key in ("a", "own", "b", "other")]
    bodies.append({"key": "fed", "value": "2", "origin": RUN})
    done = await asyncio.gather(*(http.post(f"{sink}/mass", json=body) for body in bodies))
    assert [one.status_code for one in done] == [422, 200, 422, 200, 200]
    assert await values_of(http, sink) == {"a": "1", "b": "1", "own": "2", "other": "2", "fed": "2"}


async def test_a_sink_without_protection_pays_no_statement_for_it(
    http: httpx.AsyncClient, sink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(http, sink, FED)
    executed: list[str] = []
    for name in ("one", "all", "run", "load"):
        original = getattr(SqliteTransaction, name)

        def counted(self: SqliteTransaction, statement: str, *values: Any, original: Any = original) -> Any:
            executed.append(statement)
            return original(self, statement, *values)

        monkeypatch.setattr(SqliteTransaction, name, counted)

    async def readings_of_the_bulk() -> int:
        executed.clear()
        body, minimal = items("a", "own"), {"Prefer": "return=minimal"}
        assert (await http.post(f"{sink}/mass", json=body, headers=minimal)).is_success
        assert executed
        return sum("staged_change" in one and "e.created_by" in one for one in executed)

    assert await readings_of_the_bulk() == 0
    await protect(http, sink)
    assert await readings_of_the_bulk() == 1
