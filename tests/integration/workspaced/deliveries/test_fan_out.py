"""Many events for many webhooks: stored with the change, and converted to deliveries in bounded steps."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.integration.workspaced.deliveries.conftest import Rig, arrival
from tests.support.webhook_receiver import DEADLINE_SECONDS, WebhookReceiver
from workspaced.events import fan_out
from workspaced.events.outbox import emit_each
from workspaced.events.payload import DomainEvent
from workspaced.http.operations import Author
from workspaced.storage.factory import transact

pytestmark = pytest.mark.both_databases


async def bulk(rig: Rig, sink: str, count: int, value: str) -> None:
    entries = [{"key": f"k{index:04d}", "value": value} for index in range(count)]
    response = await rig.http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
    assert response.status_code == 200, response.text


async def received(receiver: WebhookReceiver, count: int) -> list[dict[str, Any]]:
    return [(await arrival(receiver)).event for _ in range(count)]


def waiting(rig: Rig) -> int:
    return int((transact(rig.settings.database, lambda tx: tx.one("SELECT count(*) FROM event_fan_out")) or (-1,))[0])


async def test_events_of_a_large_bulk_are_in_order_and_before_later_ones(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H18
    await rig.webhook(receiver.url, dataEvents=["data_sink.entry.*"], inOrder=True)
    await rig.webhook("http://127.0.0.1:9009/", dataEvents=["data_sink.entry.created"])
    await rig.webhook("http://127.0.0.1:9009/", dataEvents=["block.*"])
    sink = await rig.sink()
    await bulk(rig, sink, 150, "1")
    for number in range(5):
        await rig.push(sink, "k0000", f"after {number}")
    events = await received(receiver, 155)
    assert [event["sequence"] for event in events] == list(range(1, 156))
    assert [event["data"]["object"]["key"] for event in events[:150]] == [f"k{index:04d}" for index in range(150)]
    assert events[-1]["data"]["object"]["value"] == "after 4"
    async with asyncio.timeout(DEADLINE_SECONDS):
        while waiting(rig):  # noqa: ASYNC110  another part deletes the rows and sends no signal
            await asyncio.sleep(0.01)
    by_webhook = transact(
        rig.settings.database, lambda tx: tx.all("SELECT count(*) FROM delivery GROUP BY webhook ORDER BY webhook")
    )
    assert by_webhook == [(155,), (150,)]


async def test_the_receivers_of_an_event_are_determined_at_its_commit(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H18
    held = pytest.MonkeyPatch()
    held.setattr("workspaced.storage.incremental_job.IncrementalJob.finish", _nothing)
    try:
        early = await rig.webhook(receiver.url, dataEvents=["data_sink.entry.*"])
        sink = await rig.sink()
        await bulk(rig, sink, 250, "1")
        late = await rig.webhook(receiver.url, dataEvents=["data_sink.entry.*"])
        transact(rig.settings.database, lambda tx: tx.run("DELETE FROM access_grant"))
        assert waiting(rig) == 1
    finally:
        held.undo()
    made = 0
    while step := transact(rig.settings.database, lambda tx: fan_out.fan_out(tx, 100)):
        assert step <= 110
        made += 1
    assert made == 3
    counts = transact(
        rig.settings.database,
        lambda tx: tx.all(
            "SELECT w.id, count(d.number) FROM webhook w LEFT JOIN delivery d ON d.webhook = w.number GROUP BY w.id"
        ),
    )
    assert dict(counts) == {early.rpartition("/")[2]: 250, late.rpartition("/")[2]: 0}


async def test_events_of_a_group_that_wait_for_their_deliveries_are_not_sent_for_ignored_clients(rig: Rig) -> None:
    held = pytest.MonkeyPatch()
    held.setattr("workspaced.storage.incremental_job.IncrementalJob.finish", _nothing)
    try:
        entries = {"dataEvents": ["data_sink.entry.*"]}
        every = await rig.webhook("http://127.0.0.1:9009/", **entries)
        some = await rig.webhook("http://127.0.0.1:9009/", **entries, ignoreClientIds=["ignored"])
        workspace = (await rig.http.get("/v1/workspace")).json()[0]["id"]
        now = time.time_ns() // 1_000_000
        changes = [
            (
                Author(principal=None, client_id="ignored" if number % 3 == 0 else "other", now=now),
                DomainEvent(
                    type="data_sink.entry.created", id=f"{number}", record={}, resource=f"data_sink.entry/s/{number}"
                ),
            )
            for number in range(150)
        ]
        transact(rig.settings.database, lambda tx: emit_each(tx, workspace, changes))
    finally:
        held.undo()
    while transact(rig.settings.database, lambda tx: fan_out.fan_out(tx, 100)):
        pass
    sent = transact(
        rig.settings.database,
        lambda tx: tx.all(
            "SELECT w.id, d.resource FROM delivery d JOIN webhook w ON w.number = d.webhook ORDER BY d.webhook, d.number"
        ),
    )
    resources = [event.resource for _, event in changes]
    by_webhook = {
        webhook: [name for one, name in sent if one == webhook.rpartition("/")[2]] for webhook in (every, some)
    }
    assert by_webhook == {every: resources, some: [name for at, name in enumerate(resources) if at % 3]}


async def _nothing(_job: object) -> int:
    return 0


async def test_any_number_of_concurrent_updates_is_coalesced(rig: Rig) -> None:
    sink = await rig.sink()
    await bulk(rig, sink, 250, "0")
    await rig.webhook("http://127.0.0.1:9009/", dataEvents=["data_sink.entry.updated"], coalesce=True, enabled=False)
    # Attempts would end the waiting, so nothing is sent during the updates.
    held = pytest.MonkeyPatch()
    held.setattr("workspaced.resources.webhooks.delivery_store.is_due", lambda _reader, *, now: False)
    try:
        webhook = (await rig.http.get("/v1/webhooks")).json()[0]["id"]
        assert (await rig.http.patch(f"/v1/webhooks/{webhook}", json={"enabled": True})).status_code == 200
        for value in ("1", "2"):
            await bulk(rig, sink, 250, value)
            async with asyncio.timeout(DEADLINE_SECONDS):
                while waiting(rig):  # noqa: ASYNC110  as above
                    await asyncio.sleep(0.01)
        bodies = transact(
            rig.settings.database,
            lambda tx: tx.all("SELECT e.id, e.body FROM delivery d JOIN event e ON e.number = d.event"),
        )
    finally:
        held.undo()
    assert len(bodies) == 250
    for event_id, body in bodies:
        text = bytes(body).decode()
        assert f'"id":"{event_id}"' in text
        assert '"value":"2"' in text
        assert '"previous":{"value":"0"}' in text


async def test_a_deleted_webhook_is_gone_immediately_and_its_deliveries_in_steps(rig: Rig) -> None:
    # contract H19
    webhook = await rig.webhook("http://127.0.0.1:9009/", dataEvents=["data_sink.entry.*"])
    sink = await rig.sink()
    await bulk(rig, sink, 450, "1")
    await rig.until(webhook, lambda log: len(log) == 100)
    identity = webhook.rpartition("/")[2]
    assert (await rig.http.delete(webhook)).status_code == 200
    for method, path in (
        ("GET", webhook),
        ("DELETE", webhook),
        ("GET", f"{webhook}/deliveries"),
        ("POST", f"{webhook}/test"),
    ):
        assert (await rig.http.request(method, path)).status_code == 404
    assert (await rig.http.get("/v1/webhooks")).json() == []
    await rig.webhook("http://127.0.0.1:9009/", id=identity, dataEvents=[])
    async with asyncio.timeout(DEADLINE_SECONDS):
        rows = "SELECT (SELECT count(*) FROM delivery), (SELECT count(*) FROM webhook)"
        while transact(rig.settings.database, lambda tx: tx.one(rows)) != (0, 1):  # noqa: ASYNC110  as above
            await asyncio.sleep(0.01)
