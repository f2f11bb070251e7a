"""Single upserts that share a commit: each caller gets the response that it would get alone."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import count, permutations
from typing import Any, NamedTuple

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from workspaced.app import running
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.storage.factory import transact

pytestmark = pytest.mark.both_databases

_TIMES = {None: None, 1: "2026-05-01T12:00:00Z", 2: "2026-05-01T13:00:00Z"}
_QUOTA = 12
_RECEIVER = "https://receiver.example/hook"


@pytest.fixture
def settings(settings: WorkspacedSettings) -> WorkspacedSettings:
    """Cache keys, so that authentication does not separate concurrent requests."""
    limits = Limits(requests_per_minute=0, entries_per_sink=_QUOTA)
    return dataclasses.replace(settings, key_cache_seconds=60, limits=limits)


@pytest.fixture(params=[False, True], ids=["without keys", "with keys"])
async def http(
    settings: WorkspacedSettings, make_key: MakeKey, request: pytest.FixtureRequest
) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client that sends an Idempotency-Key with each request, or none."""
    headers = {"x-api-key": make_key(), "ClientId": "tests"}
    numbers = count()

    async def add_key(sent: httpx.Request) -> None:
        if request.param and sent.method == "POST":
            sent.headers["Idempotency-Key"] = f"request {next(numbers)}"

    async with running(settings) as app:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers) as client:
            client.event_hooks["request"].append(add_key)
            yield client


class _State(NamedTuple):
    """The parts of an entry that a write can change."""

    value: str
    data_type: str
    observed: int | None
    version: int


@dataclass(frozen=True)
class _Push:
    """A request and its response."""

    key: str
    value: str
    data_type: str | None
    observed: int | None
    create: bool
    status: int = 0
    response: tuple[str, str, str, bool] = ("", "", "", False)

    def after(self, before: _State | None) -> tuple[int, _State | None, bool]:
        """Return status, state and whether it was outdated, as the service does (contract M1, M2, M6)."""
        if before is None:
            if not self.create:
                return 404, None, False
            return 200, _State(self.value, self.data_type or "scalar", self.observed, 1), False
        if self.observed is not None and before.observed is not None and self.observed < before.observed:
            return 200, before, True
        observed = before.observed if self.observed is None else self.observed
        return 200, _State(self.value, self.data_type or before.data_type, observed, before.version + 1), False


async def _sent(http: httpx.AsyncClient, sink: str, push: _Push) -> _Push:
    body = {"key": push.key, "value": push.value, "dataType": push.data_type, "observedAt": _TIMES[push.observed]}
    path = f"{sink}/mass" if push.create else f"{sink}/mass?create=false"
    given = {name: value for name, value in body.items() if value is not None}
    response = await http.post(path, json=given, headers={"X-Request-Id": push.value})
    if response.status_code != 200:
        return dataclasses.replace(push, status=response.status_code)
    entry = response.json()
    stale = response.headers.get("X-Stale-Write") == "ignored"
    reported = (entry["value"], entry["dataType"], response.headers["ETag"], stale)
    return dataclasses.replace(push, status=200, response=reported)


def _explained(pushes: Sequence[_Push], before: _State | None) -> list[_State | None]:
    """Return the possible states of the key, over the orders of requests that explain each response."""
    found: list[_State | None] = []
    for order in permutations(pushes):
        state = before
        for push in order:
            status, state, stale = push.after(state)
            shown = (state.value, state.data_type, f'"{state.version}"', stale) if state and status == 200 else None
            if push.status != status or (shown is not None and shown != push.response):
                break
        else:
            found.append(state)
    return found


async def _listen(http: httpx.AsyncClient) -> None:
    """Add a webhook for each change. Its deliveries need not arrive."""
    response = await http.post("/v1/webhooks", json={"url": _RECEIVER, "dataEvents": ["data_sink.entry.*"]})
    assert response.status_code == 201, response.text


async def _entries(http: httpx.AsyncClient, sink: str) -> dict[str, Any]:
    return {entry["key"]: entry for entry in (await http.get(sink)).json()["entries"]}


@pytest.mark.parametrize("seed", range(15))
async def test_every_response_is_explained_by_an_order_of_the_requests(
    http: httpx.AsyncClient, sink: str, seed: int
) -> None:
    dice = random.Random(seed)
    keys = [f"k{number}" for number in range(8)]
    before: dict[str, _State] = {}
    for key in keys[: dice.randrange(6)]:
        push = _Push(key, f"old {key}", dice.choice([None, "text"]), dice.choice([None, 1]), create=True)
        await _sent(http, sink, push)
        state = push.after(None)[1]
        assert state
        before[key] = state
    pushes = [
        _Push(
            key=dice.choice(keys),
            value=f"v{number}",
            data_type=dice.choice([None, "scalar", "text"]),
            observed=dice.choice([None, None, 1, 2]),
            create=dice.random() < 0.8,
        )
        for number in range(24)
    ]
    if dice.random() < 0.5:  # with a webhook each change also emits an event
        await _listen(http)
    responded = await asyncio.gather(*(_sent(http, sink, push) for push in pushes))
    left = await _entries(http, sink)
    for key in keys:
        mine = [push for push in responded if push.key == key]
        states = _explained(mine, before.get(key))
        entry = left.get(key)
        held = (entry["value"], entry["dataType"]) if entry else None
        assert held in [(state.value, state.data_type) if state else None for state in states], (key, mine)
    assert len({entry["id"] for entry in left.values()}) == len(left)
    noted = await http.get("/v1/audit-log?action=data_sink.entry.*&take=200")
    reported = sorted(row["requestId"] for row in noted.json() if row["requestId"].startswith("v"))
    assert reported == sorted(push.value for push in responded if push.status == 200 and not push.response[3])
    assert len(await _listed(http, sink)) == len(left)


async def _listed(http: httpx.AsyncClient, sink: str) -> list[Any]:
    """Return the count on the sink's page of entries."""
    response = await http.get(f"{sink}?take=100")
    assert int(response.headers["X-Total-Count"]) == len(response.json()["entries"])
    return list(response.json()["entries"])


async def test_the_quota_applies_within_a_group(http: httpx.AsyncClient, sink: str) -> None:
    pushes = [_Push(f"n{number}", f"v{number}", None, None, create=True) for number in range(_QUOTA + 5)]
    responded = await asyncio.gather(*(_sent(http, sink, push) for push in pushes))
    assert sorted(push.status for push in responded) == [200] * _QUOTA + [409] * 5
    assert set(await _entries(http, sink)) == {push.key for push in responded if push.status == 200}
    # The sink's own row counts the entries, so the group must update it correctly.
    assert (
        await http.delete(f"{sink}/{next(push.key for push in responded if push.status == 200)}")
    ).status_code == 200
    again = await asyncio.gather(*(_sent(http, sink, _Push(f"m{n}", "v", None, None, create=True)) for n in range(3)))
    assert sorted(push.status for push in again) == [200, 409, 409]


async def test_a_supplied_id_is_used_once_and_the_others_are_written(http: httpx.AsyncClient, sink: str) -> None:
    wanted = "123e4567-e89b-12d3-a456-426614174000"
    bodies = [{"key": f"k{n}", "value": "v", **({"id": wanted} if n % 3 == 0 else {})} for n in range(9)]
    responses = await asyncio.gather(*(http.post(f"{sink}/mass", json=body) for body in bodies))
    statuses = [response.status_code for response in responses]
    assert sorted(statuses[::3]) == [200, 409, 409]
    assert [status for place, status in enumerate(statuses) if place % 3] == [200] * 6
    assert [entry["id"] for entry in (await _entries(http, sink)).values()].count(wanted) == 1


async def test_a_missing_sink_is_404_for_each_caller(http: httpx.AsyncClient, sinks: str, sink: str) -> None:
    paths = [sink, f"{sinks}/SNK-99", f"{sinks}/123e4567-e89b-12d3-a456-426614174000"] * 4
    responses = await asyncio.gather(
        *(http.post(f"{path}/mass", json={"key": f"k{n}", "value": "v"}) for n, path in enumerate(paths))
    )
    assert [response.status_code for response in responses] == [200, 404, 404] * 4
    assert {response.json()["code"] for response in responses if response.status_code == 404} == {"data_sink_not_found"}


async def test_each_change_of_a_group_emits_an_event(
    http: httpx.AsyncClient, settings: WorkspacedSettings, sink: str
) -> None:
    await _listen(http)
    for value in ("first", "second", "second"):  # an unchanged value emits no event
        pushes = [_Push(f"k{n}", value, None, None, create=True) for n in range(8)]
        responded = await asyncio.gather(*(_sent(http, sink, push) for push in pushes))
        assert {push.status for push in responded} == {200}
    reported = transact(settings.database, lambda tx: tx.all("SELECT type FROM event ORDER BY number"))
    assert [kind for (kind,) in reported] == ["data_sink.entry.created"] * 8 + ["data_sink.entry.updated"] * 8


async def test_a_group_changes_its_sink_and_outdated_values_do_not(http: httpx.AsyncClient, sink: str) -> None:
    tags: list[str] = []
    for observed in (2, 2, 1):
        pushes = [_Push(f"k{n}", f"v{observed}", None, observed, create=True) for n in range(6)]
        responded = await asyncio.gather(*(_sent(http, sink, push) for push in pushes))
        assert {push.response[3] for push in responded} == {observed == 1}
        tags.append((await http.get(sink)).headers["ETag"])
    assert tags[0] != tags[1] == tags[2]
