"""Events of sinks and entries: one for each change, none without a change, and their receivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tests.integration.workspaced.deliveries.conftest import Rig, arrival
from tests.support.database_client import DatabaseClient
from tests.support.json_schema import fits
from tests.support.webhook_receiver import WebhookReceiver
from workspaced.storage.factory import transact


async def _received(rig: Rig, receiver: WebhookReceiver, count: int) -> list[Any]:
    """Return the next events, each valid under its schema."""
    schemas = {kind["type"]: kind["schema"] for kind in (await rig.http.get("/v1/webhooks/event-types")).json()}
    events = [(await arrival(receiver)).event for _ in range(count)]
    for event in events:
        assert fits(event, schemas[event["type"]], schemas[event["type"]]), event
    return events


def _events_stored(rig: Rig) -> int:
    return int((transact(rig.settings.database, lambda tx: tx.one("SELECT count(*) FROM event")) or (-1,))[0])


async def test_every_change_of_a_sink_and_its_entries_emits_an_event_with_the_previous_values(
    rig: Rig, receiver: WebhookReceiver
) -> None:
    # contract H8
    await rig.webhook(receiver.url, inOrder=True, dataEvents=["data_sink.*"])
    sink = await rig.sink("old")
    await rig.http.patch(sink, json={"label": "new"})
    entry = {"key": "a/b", "value": "0.10", "dataType": "scalar"}
    created = (await rig.http.post(sink, json=entry)).json()
    await rig.http.patch(f"{sink}/a%2Fb", json={"value": "0.2", "dataType": "text"})
    await rig.push(sink, "a/b", "0.3")
    await rig.push(sink, "c", "1")
    last = (await rig.http.get(f"{sink}/a%2Fb")).json()
    await rig.http.delete(f"{sink}/a%2Fb")
    await rig.http.delete(sink)
    events = await _received(rig, receiver, 8)
    assert [event["type"] for event in events] == [
        "data_sink.created",
        "data_sink.updated",
        "data_sink.entry.created",
        "data_sink.entry.updated",
        "data_sink.entry.updated",
        "data_sink.entry.created",
        "data_sink.entry.deleted",
        "data_sink.deleted",
    ]
    assert [event["sequence"] for event in events] == list(range(1, 9))
    assert {event["workspaceId"] for event in events} == {rig.workspace}
    assert {(event["actor"], event["clientId"]) for event in events} == {("svc:test", "tests")}
    assert events[0]["data"]["object"]["entries"] == []
    assert (events[1]["data"]["object"]["label"], events[1]["data"]["previous"]) == ("new", {"label": "old"})
    assert events[2]["data"] == {"object": created, "previous": {}}
    assert events[3]["data"]["previous"] == {"value": "0.10", "dataType": "scalar"}
    assert events[4]["data"]["previous"] == {"value": "0.2"}
    assert events[6]["data"]["object"] == last


@pytest.mark.both_databases
async def test_a_bulk_emits_one_event_for_each_changed_key(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H7
    sink = await rig.sink()
    for key in ("same", "moved", "gone", "back", "again"):
        await rig.push(sink, key, "1")
    await rig.webhook(receiver.url, inOrder=True)
    items = [
        {"key": "same", "value": "1"},
        {"key": "moved", "value": "2"},
        {"key": "moved", "value": "3"},
        {"key": "gone", "delete": True},
        {"key": "never", "delete": True},
        {"key": "back", "value": "2"},
        {"key": "back", "value": "1"},
        {"key": "again", "delete": True},
        {"key": "again", "value": "1"},
        {"key": "fresh", "value": "1"},
    ]
    response = await rig.http.post(f"{sink}/mass", json=items, headers={"Prefer": "return=minimal"})
    assert response.status_code == 200
    events = await _received(rig, receiver, 5)
    assert [(event["type"].rpartition(".")[2], event["data"]["object"]["key"]) for event in events] == [
        ("deleted", "again"),
        ("created", "again"),
        ("created", "fresh"),
        ("deleted", "gone"),
        ("updated", "moved"),
    ]
    assert (events[4]["data"]["object"]["value"], events[4]["data"]["previous"]) == ("3", {"value": "1"})
    assert _events_stored(rig) == 5


async def test_a_request_that_changes_nothing_emits_no_event(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H7, M5
    sink = await rig.sink()
    await rig.push(sink, "k", "1")
    await rig.webhook(receiver.url, inOrder=True)
    await rig.push(sink, "k", "1")
    await rig.http.patch(f"{sink}/k", json={"value": "1"})
    await rig.http.patch(f"{sink}/k", json={})
    await rig.http.patch(sink, json={"label": "s"})
    late = {"key": "k", "value": "9", "observedAt": "2020-01-01T00:00:00Z"}
    early = {**late, "value": "1", "observedAt": "2021-01-01T00:00:00Z"}
    for body in (early, late, [late]):
        assert (await rig.http.post(f"{sink}/mass", json=body)).status_code == 200
    await rig.http.post(f"{sink}/mass", json=[{"key": "k", "value": 7}])
    await rig.http.delete(f"{sink}/none")
    assert _events_stored(rig) == 0


async def test_without_a_subscribed_webhook_no_event_is_stored(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H1
    await rig.webhook(receiver.url, inOrder=True, dataEvents=["block.*"])
    await rig.webhook(receiver.url, inOrder=True, dataEvents=[])
    await rig.webhook(receiver.url, inOrder=True, enabled=False)
    await rig.webhook(receiver.url, inOrder=True, ignoreClientIds=["tests"])
    await rig.webhook(receiver.url, inOrder=True, workspaceIds=["123e4567-e89b-12d3-a456-426614174000"])
    sink = await rig.sink()
    await rig.push(sink, "k", "1")
    await rig.http.post(f"{sink}/mass", json=[{"key": "k", "value": "2"}])
    assert _events_stored(rig) == 0
    counters = transact(rig.settings.database, lambda tx: tx.all("SELECT last_sequence FROM event_sequence"))
    assert counters == []


async def test_an_event_of_a_transaction_that_is_rolled_back_is_never_sent(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H7
    """The outbox is part of the transaction: a create that repeats an id leaves no event."""
    await rig.webhook(receiver.url, inOrder=True, dataEvents=["data_sink.entry.*"])
    sink = await rig.sink()
    entry = {"key": "k", "dataType": "t", "value": "1"}
    assert (await rig.http.post(sink, json=entry)).status_code == 201
    assert (await rig.http.post(sink, json=entry)).status_code == 409
    assert _events_stored(rig) == 1


async def test_a_webhook_receives_only_what_its_owner_may_read(
    rig: Rig, receiver: WebhookReceiver, make_key: Callable[..., str]
) -> None:
    # contract H2
    other = (await rig.http.post("/v1/workspace", json={"label": "other"})).json()["id"]
    key = make_key(name="svc:one", role="editor", workspace_id=other)
    members = {"url": receiver.url, "dataEvents": ["data_sink.created"]}
    made = await rig.http.post("/v1/webhooks", json=members, headers={"x-api-key": key})
    assert made.status_code == 201
    await rig.sink("not theirs")
    await rig.http.post(f"/v1/workspace/{other}/data-sink", json={"label": "theirs"})
    assert [event["data"]["object"]["label"] for event in await _received(rig, receiver, 1)] == ["theirs"]

    def revoke(tx: Any) -> None:
        tx.run("UPDATE api_key SET revoked_at = 1 WHERE principal = 'svc:one'")

    transact(rig.settings.database, revoke)
    await rig.http.post(f"/v1/workspace/{other}/data-sink", json={"label": "no more"})
    assert _events_stored(rig) == 1


async def test_a_guest_receives_events_of_workspaces_that_admit_guests(
    rig: Rig, receiver: WebhookReceiver, make_key: Callable[..., str]
) -> None:
    key = make_key(name="svc:guest")
    transact(rig.settings.database, lambda tx: tx.run("UPDATE api_key SET guest = 1 WHERE principal = 'svc:guest'"))
    opened = (await rig.http.post("/v1/workspace", json={"label": "open", "guestsEnabled": True})).json()["id"]
    members = {"url": receiver.url, "dataEvents": ["data_sink.created"]}
    made = await rig.http.post("/v1/webhooks", json=members, headers={"x-api-key": key})
    assert made.status_code == 201
    await rig.sink("closed")
    await rig.http.post(f"/v1/workspace/{opened}/data-sink", json={"label": "open"})
    assert [event["data"]["object"]["label"] for event in await _received(rig, receiver, 1)] == ["open"]
    assert _events_stored(rig) == 1


async def test_events_of_workspaces_and_blocks_match_their_schemas(rig: Rig, receiver: WebhookReceiver) -> None:
    await rig.webhook(receiver.url, inOrder=True, dataEvents=["workspace.*", "block.*"])
    workspace = (await rig.http.post("/v1/workspace", json={"label": "new"})).json()["id"]
    blocks = f"/v1/workspace/{workspace}/blocks"
    block = (await rig.http.post(blocks, json={"workspace": workspace, "label": "b"})).json()["id"]
    await rig.http.patch(f"{blocks}/{block}", json={"type": ["part"]})
    await rig.http.patch(f"/v1/workspace/{workspace}", json={"label": "newer"})
    await rig.http.delete(f"{blocks}/{block}")
    await rig.http.delete(f"/v1/workspace/{workspace}")
    events = await _received(rig, receiver, 7)
    assert [event["type"] for event in events] == [
        "workspace.created",
        "block.created",
        "block.created",
        "block.updated",
        "workspace.updated",
        "block.deleted",
        "workspace.deleted",
    ]
    assert [event["sequence"] for event in events] == list(range(1, 8))
    assert events[4]["data"]["previous"] == {"label": "new"}


async def test_a_large_value_is_omitted_and_the_event_says_so(rig: Rig, receiver: WebhookReceiver) -> None:
    await rig.webhook(receiver.url, inOrder=True, dataEvents=["data_sink.entry.*"])
    sink = await rig.sink()
    await rig.push(sink, "k", "x" * 30_000)
    (event,) = await _received(rig, receiver, 1)
    assert event["data"]["truncated"] is True
    assert set(event["data"]["object"]) == {"id", "dataSinkId"}


@pytest.mark.parametrize("value", ["0.10", "ü", '\u2028 \\ "', ""])
async def test_the_signed_bytes_are_the_sent_bytes(rig: Rig, receiver: WebhookReceiver, value: str) -> None:
    # contract H9
    path = await rig.webhook(receiver.url, inOrder=True, dataEvents=["data_sink.entry.*"])
    secret = (await rig.http.get(path)).json()["signingSecret"]
    await rig.push(await rig.sink(), "k", value)
    received = await arrival(receiver)
    verified = Webhook(secret).verify(received.body, dict(received.headers))
    assert verified["data"]["object"]["value"] == value
    assert received.headers["webhook-id"] == verified["id"]
    assert received.headers["content-type"] == "application/json"
    assert received.headers["user-agent"].startswith("workspaced/")
    age = datetime.now(UTC).timestamp() - int(received.headers["webhook-timestamp"])
    assert 0 <= age < 60


@pytest.mark.both_databases
async def test_concurrent_changes_are_numbered_without_gaps_and_sent_in_that_order(
    rig: Rig, receiver: WebhookReceiver
) -> None:
    # contract H8
    webhook = await rig.webhook(receiver.url, inOrder=True, dataEvents=["data_sink.entry.created"])
    sink = await rig.sink()
    async with asyncio.TaskGroup() as pushing:
        for number in range(20):
            pushing.create_task(rig.push(sink, f"k{number}", "1"))
    events = await _received(rig, receiver, 20)
    assert [event["sequence"] for event in events] == list(range(1, 21))
    await rig.until(webhook, lambda log: all(one["status"] == "succeeded" for one in log))
    orphans = "SELECT count(*) FROM event WHERE number NOT IN (SELECT event FROM delivery)"
    assert DatabaseClient(rig.settings.database).execute(orphans) == [(0,)]
