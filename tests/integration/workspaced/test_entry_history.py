"""The history of entries: each change with its request, the value at any instant, and the bounds of what is kept.

This tests contract DS13, DS14, DS15, DS16.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.api_client import api_client
from workspaced.app import Application, running
from workspaced.core.clock import Clock, now_ms
from workspaced.core.timestamps import stamp
from workspaced.settings.model import WorkspacedSettings

_DAY_MS = 86_400_000


class PastClock(Clock):
    """A clock that begins twenty days ago and moves only when a test advances it."""

    def __init__(self) -> None:
        self._now = now_ms() - 20 * _DAY_MS

    def now(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> int:
        self._now += milliseconds
        return self._now


class _Service:
    """A service with a clock of its own, one workspace and one sink."""

    def __init__(self, app: Application, http: httpx.AsyncClient, clock: PastClock, sink: str) -> None:
        self.app, self.http, self.clock, self.sink = app, http, clock, sink
        self.history = sink.replace("/data-sink/", "/data-sink-history/")

    async def ok(self, method: str, path: str, **more: Any) -> httpx.Response:
        response = await self.http.request(method, path, **more)
        assert response.is_success, response.text
        return response

    async def configure(self, **body: int | None) -> dict[str, Any]:
        found: dict[str, Any] = (await self.ok("PATCH", self.history, json=body)).json()
        return found

    async def set(self, *items: Mapping[str, Any]) -> int:
        """Apply the items with one request at a later instant. Return the instant."""
        now = self.clock.advance(1)
        body = list(items) if len(items) > 1 or items[0].get("delete") else items[0]
        await self.ok("POST", f"{self.sink}/mass", json=body)
        return now

    async def changes(self, key: str, take: int = 1_000) -> list[dict[str, Any]]:
        return await self.pages(f"{self.history}/entry/{quote(key, safe='')}", {"take": str(take)})

    async def differences(self, since: int, until: int, take: int = 1_000) -> dict[str, Any]:
        query = {"from": stamp(since), "to": stamp(until), "take": str(take)}
        found: dict[str, Any] = {}
        for page in await self.pages(f"{self.history}/comparison", query):
            page["differences"] = found.get("differences", []) + page["differences"]
            found = {**page, **{name: found[name] for name in ("unknownKeys",) if name in found}}
        return found

    async def pages(self, path: str, query: Mapping[str, str]) -> list[Any]:
        """Return the records of all pages, or the pages themselves if they are no lists."""
        response = await self.ok("GET", path, params=query)
        found: list[Any] = []
        while True:
            body = response.json()
            found += body if isinstance(body, list) else [body]
            if "next" not in response.links:
                return found
            response = await self.ok("GET", response.links["next"]["url"])

    async def entries(self) -> dict[str, tuple[str | None, str]]:
        sink = (await self.ok("GET", self.sink)).json()
        return {entry["key"]: (entry["value"], entry["dataType"]) for entry in sink["entries"]}


@pytest.fixture
async def service(settings: WorkspacedSettings, make_key: Any) -> AsyncIterator[_Service]:
    async with _served(settings, make_key()) as served:
        yield served


@asynccontextmanager
async def _served(settings: WorkspacedSettings, key: str, sink: str = "") -> AsyncIterator[_Service]:
    clock = PastClock()
    async with running(settings, clock=clock) as app, api_client(app, key) as http:
        if not sink:
            workspace = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()["id"]
            path = f"/v1/workspace/{workspace}/data-sink"
            sink = f"{path}/{(await http.post(path, json={'label': 'Masses'})).json()['id']}"
        yield _Service(app, http, clock, sink)


async def test_a_change_has_its_values_its_instant_and_its_request(service: _Service) -> None:
    await service.configure(changes=10)
    first = await service.set({"key": "a/b", "value": "1 kg"})
    await service.set({"key": "a/b", "value": "1 kg"})  # the same value is no change
    second = service.clock.advance(1)
    changed = await service.ok("PATCH", f"{service.sink}/a%2Fb", json={"value": None}, headers={"X-Request-Id": "r-7"})
    third = service.clock.advance(1)
    await service.ok("DELETE", f"{service.sink}/a%2Fb")
    key_id = (await service.ok("GET", "/v1/api-keys")).json()[0]["id"]

    found = await service.changes("a/b")
    one, nothing = {"value": "1 kg", "dataType": "scalar"}, {"value": None, "dataType": "scalar"}
    assert [(row["time"], row["effect"], row["before"], row["after"]) for row in found] == [
        (stamp(third), "removed", nothing, None),
        (stamp(second), "changed", one, nothing),
        (stamp(first), "added", None, one),
    ]
    assert [row["operation"] for row in found] == [
        "data_sinks.delete_entry",
        "data_sinks.update_entry",
        "data_sinks.mass",
    ]
    assert {(row["principal"], row["keyId"], row["clientId"]) for row in found} == {("svc:test", key_id, "tests")}
    assert found[1]["requestId"] == changed.headers["X-Request-Id"]
    assert await service.changes("a/b", take=1) == found


async def test_without_a_setting_nothing_is_recorded(service: _Service) -> None:
    await service.set({"key": "a", "value": "1"})
    assert await service.changes("a") == []
    settings = (await service.ok("GET", service.history)).json()
    assert (settings["changes"], settings["ownChanges"], settings["knownFrom"]) == (0, None, None)
    assert not (await service.differences(service.clock.now() - 1, service.clock.now()))["isKnown"]
    assert (await service.http.get(f"{service.history}/entry/b")).status_code == 404


@pytest.mark.both_databases
@pytest.mark.parametrize("seed", [1, 2])
async def test_the_values_at_any_two_instants_are_those_that_the_service_returned_then(
    service: _Service, seed: int
) -> None:
    generator = random.Random(seed)
    keys = ["a", "b", "c", "ä", "%_"]
    for key in keys[:2]:
        await service.set({"key": key, "value": "before"})
    await service.configure(changes=1_000)
    snapshots = {service.clock.now(): await service.entries()}
    for _ in range(25):
        items: list[dict[str, Any]] = []
        for _ in range(generator.choice([1, 1, 2, 6])):
            item: dict[str, Any] = {"key": generator.choice(keys)}
            if generator.random() < 0.25:
                item["delete"] = True
            else:
                item["value"] = generator.choice(["1", "2", ""])
                if generator.random() < 0.3:
                    item["dataType"] = generator.choice(["scalar", "text"])
            items.append(item)
        now = await service.set(*items)
        snapshots[now] = await service.entries()

    for since, until in itertools.combinations(sorted(snapshots), 2):
        if generator.random() < 0.3:
            _assert_same(await service.differences(since, until, take=2), snapshots[since], snapshots[until])
    for key in keys:
        _assert_chain(await service.changes(key, take=3), key, snapshots)


@pytest.mark.both_databases
@pytest.mark.parametrize("is_bulk", [False, True], ids=["single", "bulk"])
async def test_a_key_that_is_added_again_after_the_clock_was_set_back_keeps_the_order_of_its_changes(
    service: _Service, *, is_bulk: bool
) -> None:
    # Without a clock that is set back: a request that another process received earlier commits after the removal.
    other = [{"key": "other", "value": "0"}] if is_bulk else []
    await service.configure(changes=10)
    first = await service.set({"key": "a", "value": "1"}, *other)
    service.clock.advance(10_000)
    await service.set({"key": "a", "delete": True})
    service.clock.advance(-5_000)
    for value in ("2", "3"):
        await service.set({"key": "a", "value": value}, *other)
    await service.set({"key": "a", "delete": True})
    await service.set({"key": "a", "value": "4"}, *other)

    values = [(row["before"] or {}).get("value") for row in await service.changes("a")]
    assert values == [None, "3", "2", None, "1", None]
    service.clock.advance(10_000)
    found = await service.differences(first, service.clock.now())
    differences = [(row["key"], row["before"]["value"], row["after"]["value"]) for row in found["differences"]]
    assert differences == [("a", "1", "4")]


@pytest.mark.both_databases
async def test_an_entry_keeps_its_newest_changes_and_its_older_values_are_unknown(service: _Service) -> None:
    await service.configure(changes=3)
    start = service.clock.now()
    await service.set({"key": "calm", "value": "0"})
    keys = ["busy", *(f"other {number}" for number in range(60))]
    instants = [await service.set(*({"key": key, "value": str(number)} for key in keys)) for number in range(20)]
    await service.app.run_maintenance()

    found = await service.changes("busy")
    assert 3 <= len(found) < 10  # the newest changes of all are looked at when there are a thousand more
    assert found[0]["after"]["value"] == "19"
    assert [row["olderDropped"] for row in found] == [False] * (len(found) - 1) + [True]
    assert len(await service.changes("calm")) == 1

    begun = await service.differences(start, service.clock.now())
    effects = {row["key"]: row["effect"] for row in begun["differences"]}
    assert effects == {"calm": "added", **dict.fromkeys(keys, "unknown")}
    early = await service.differences(start, instants[5])
    assert [row["key"] for row in early["differences"]] == ["calm"]
    assert set(early["unknownKeys"]) == set(keys)
    dropped = instants[19 - len(found)]  # the newest change that was dropped
    late = await service.differences(dropped, service.clock.now())
    busy = next(row for row in late["differences"] if row["key"] == "busy")
    assert (busy["effect"], busy["before"]["value"]) == ("changed", str(instants.index(dropped)))


@pytest.mark.both_databases
async def test_old_changes_are_dropped_and_the_past_is_unknown_before_them(service: _Service) -> None:
    await service.configure(changes=10, days=5)
    first = await service.set({"key": "a", "value": "1"})
    service.clock.advance(4 * _DAY_MS)
    second = await service.set({"key": "a", "value": "2"})
    service.clock.advance(2 * _DAY_MS)
    await service.app.run_maintenance()

    assert [row["before"]["value"] for row in await service.changes("a")] == ["1"]
    assert not (await service.differences(first, second))["isKnown"]
    found = await service.differences(second - 1, second)
    assert found["isKnown"]
    assert [(row["before"]["value"], row["after"]["value"]) for row in found["differences"]] == [("1", "2")]


@pytest.mark.both_databases
async def test_a_history_that_ended_is_dropped_and_a_new_one_begins_without_it(service: _Service) -> None:
    await service.configure(changes=10)
    first = await service.set({"key": "a", "value": "1"})
    await service.configure(changes=0)
    await service.set({"key": "a", "value": "2"})
    await service.configure(changes=10)  # before a job dropped the earlier rows
    assert await service.changes("a") == []
    assert not (await service.differences(first - 1, first))["isKnown"]
    await service.set({"key": "a", "value": "3"})
    await service.app.run_maintenance()
    assert [(row["before"]["value"], row["after"]["value"]) for row in await service.changes("a")] == [("2", "3")]


async def test_a_request_that_fails_leaves_no_history(service: _Service) -> None:
    await service.configure(changes=10)
    await service.set({"key": "a", "value": "1"})
    body = [{"key": "a", "value": "2"}, {"key": "new", "value": "2"}]
    response = await service.http.post(f"{service.sink}/mass", params={"create": "false"}, json=body)
    assert response.status_code == 404
    assert len(await service.changes("a")) == 1


async def test_the_service_can_have_a_history_of_all_sinks_and_keeps_it_over_a_restart(
    settings: WorkspacedSettings, make_key: Any
) -> None:
    key = make_key()
    recording = dataclasses.replace(settings, history=dataclasses.replace(settings.history, changes=5))
    async with _served(recording, key) as service:
        await service.set({"key": "a", "value": "1"})
        sink = service.sink
    async with _served(recording, key, sink) as service:
        service.clock.advance(10)
        await service.set({"key": "a", "value": "2"})
        assert [row["after"]["value"] for row in await service.changes("a")] == ["2", "1"]
        await service.ok("DELETE", sink)
        await service.app.run_maintenance()
        assert (await service.http.get(f"{service.history}/entry/a")).status_code == 404


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"from": "yesterday"}, "bad_from"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "bad_from"),
        ({"from": "2026-01-02T00:00:00Z", "to": "x"}, "bad_to"),
        ({"from": "0001-01-01T00:00:00+23:59"}, "bad_from"),
        ({"from": "2026-01-02T00:00:00Z", "cursor": "x"}, "bad_cursor"),
        ({"from": "2026-01-02T00:00:00Z", "skip": "1"}, "bad_skip"),
    ],
)
async def test_an_invalid_comparison_is_rejected(service: _Service, query: dict[str, str], code: str) -> None:
    response = await service.http.get(f"{service.history}/comparison", params=query)
    assert (response.status_code, response.json()["code"]) == (400, code)


def _assert_same(
    found: Mapping[str, Any], before: Mapping[str, tuple[str | None, str]], after: Mapping[str, tuple[str | None, str]]
) -> None:
    expected = {key: (before.get(key), after.get(key)) for key in before.keys() | after.keys()}
    reported = {row["key"]: (_state(row["before"]), _state(row["after"])) for row in found["differences"]}
    assert reported == {key: states for key, states in expected.items() if states[0] != states[1]}
    assert len(found["differences"]) == len(reported)
    assert found["unknownKeys"] == []


def _assert_chain(
    changes: list[dict[str, Any]], key: str, snapshots: Mapping[int, Mapping[str, tuple[str | None, str]]]
) -> None:
    """Replay the changes forward from the first snapshot: at each instant they give the value of that instant."""
    state = next(iter(snapshots.values())).get(key)
    for now, entries in snapshots.items():
        for change in reversed(changes):
            if change["time"] == stamp(now):
                assert _state(change["before"]) == state
                state = _state(change["after"])
        assert state == entries.get(key)


def _state(record: Mapping[str, Any] | None) -> tuple[str | None, str] | None:
    return (record["value"], record["dataType"]) if record else None
