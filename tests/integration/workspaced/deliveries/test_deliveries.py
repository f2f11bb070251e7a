"""Deliveries: retries, final failures, order, and forbidden targets."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from typing import Any, Protocol

import httpx
import pytest
from standardwebhooks.webhooks import Webhook
from structlog.testing import capture_logs

from tests.integration.workspaced.deliveries.conftest import ManualClock, Rig, arrival
from tests.support.api_client import api_client
from tests.support.webhook_receiver import StubResponse, WebhookReceiver
from workspaced.app import running
from workspaced.resources.webhooks import store
from workspaced.security.egress.rules import Address, EgressRules
from workspaced.security.secret_box import SecretBox
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact
from workspaced.storage.port import StorageUnusable

_DAY = 86_400


async def _one_event(rig: Rig, url: str, **members: Any) -> str:
    """Create a webhook with one pending delivery."""
    webhook = await rig.webhook(url, dataEvents=["data_sink.created"], **members)
    await rig.sink()
    return webhook


@pytest.mark.both_databases
async def test_two_failures_and_a_success_are_three_attempts_under_one_id(rig: Rig) -> None:
    # contract H9, H11
    with WebhookReceiver(500, 500, 200) as receiver:
        webhook = await _one_event(rig, receiver.url)
        begun = rig.clock.now()
        for count, pause in ((1, 5), (2, 300)):
            delivery = await rig.attempted(webhook, count)
            assert (delivery["status"], delivery["attemptCount"]) == ("failed", count)
            await rig.clock.advance(pause - 0.001)
            assert len(receiver.received) == count
            await rig.clock.advance(0.001)
        delivery = await rig.attempted(webhook, 3)
        sent = receiver.received
    assert (delivery["status"], delivery["nextAttemptAt"]) == ("succeeded", None)
    assert len({one.headers["webhook-id"] for one in sent}) == 1
    assert len({one.body for one in sent}) == 1
    seconds = [int(one.headers["webhook-timestamp"]) - begun // 1_000 for one in sent]
    assert [seconds[0], seconds[1] // 5, seconds[2] // 305] == [0, 1, 1]
    detail = await rig.detail(webhook, delivery)
    assert [(one["number"], one["statusCode"]) for one in detail["attempts"]] == [(1, 500), (2, 500), (3, 200)]
    assert detail["event"] == sent[0].event


@pytest.mark.both_databases
async def test_after_ten_attempts_a_delivery_is_dead_and_can_be_sent_again_on_request(rig: Rig) -> None:
    # contract H11, H13, WH10
    with WebhookReceiver(*[500] * 10, 200) as receiver:
        webhook = await _one_event(rig, receiver.url)
        for count in range(1, 10):
            assert (await rig.attempted(webhook, count))["status"] == "failed"
            await rig.clock.advance(_DAY)
            if count == 4:  # Successes of other deliveries prevent that the webhook is disabled.
                transact(rig.settings.database, lambda tx: tx.run("UPDATE webhook SET failing_since = NULL"))
        delivery = await rig.attempted(webhook, 10)
        assert delivery["status"] == "dead"
        assert delivery["finishedAt"] is not None
        again = await rig.http.post(f"{webhook}/deliveries/{delivery['id']}/redeliver")
        assert again.status_code == 202
        assert again.headers["Location"] == f"{webhook}/deliveries/{delivery['id']}"
        delivered = await rig.attempted(webhook, 11)
        assert delivered["status"] == "succeeded"
        assert len({one.headers["webhook-id"] for one in receiver.received}) == 1


async def test_a_retry_after_of_a_receiver_is_respected(rig: Rig) -> None:
    # contract H11
    with WebhookReceiver(StubResponse(status=429, headers={"Retry-After": "3600"}), 200) as receiver:
        webhook = await _one_event(rig, receiver.url)
        await rig.attempted(webhook, 1)
        await rig.clock.advance(3_599)
        assert (await rig.deliveries(webhook))[0]["status"] == "failed"
        await rig.clock.advance(1)
        assert (await rig.attempted(webhook, 2))["status"] == "succeeded"


@pytest.mark.both_databases
async def test_410_disables_a_webhook_and_enabling_it_resumes_with_new_events(rig: Rig) -> None:
    # contract H11, H13
    with WebhookReceiver(410, 200) as receiver, capture_logs() as lines:
        webhook = await _one_event(rig, receiver.url)
        assert (await rig.attempted(webhook, 1))["status"] == "dead"
        record = (await rig.http.get(webhook)).json()
        assert (record["enabled"], record["disabledReason"]) == (False, "the receiver responded 410 Gone")
        assert record["updatedBy"] == "system"
        disabled = [line for line in lines if line["event"] == "webhook_disabled"]
        assert [(line["webhook"], line["reason"]) for line in disabled] == [(record["id"], record["disabledReason"])]
        await rig.sink("while disabled")
        assert len(await rig.deliveries(webhook)) == 1
        for path in (f"{webhook}/test", f"{webhook}/deliveries/{(await rig.deliveries(webhook))[0]['id']}/redeliver"):
            refused = await rig.http.post(path)
            assert (refused.status_code, refused.json()["code"]) == (409, "webhook_disabled")
        enabled = (await rig.http.patch(webhook, json={"enabled": True})).json()
        assert (enabled["enabled"], enabled["disabledReason"]) == (True, "")
        await rig.sink("afterwards")
        await rig.until(webhook, lambda log: log[0]["status"] == "succeeded")
        labels = [one.event["data"]["object"]["label"] for one in receiver.received]
    assert labels == ["s", "afterwards"]


async def test_a_webhook_is_disabled_only_after_five_days_of_failures(rig: Rig) -> None:
    # contract H11
    with WebhookReceiver(500) as receiver:
        webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"])
        for _ in range(19):
            await rig.sink()
        await rig.until(webhook, lambda log: all(one["attemptCount"] == 1 for one in log))
        assert (await rig.http.get(webhook)).json()["enabled"] is True
        transact(
            rig.settings.database,
            lambda tx: tx.run("UPDATE webhook SET failing_since = failing_since - :gone", {"gone": 5 * _DAY * 1_000}),
        )
        await rig.sink()

        async with asyncio.timeout(30):
            while (record := (await rig.http.get(webhook)).json())["enabled"]:  # noqa: ASYNC110  nothing wakes a caller
                await asyncio.sleep(0.005)
    assert record["disabledReason"] == "every attempt failed for five days"


async def test_a_success_resets_the_failures(rig: Rig) -> None:
    with WebhookReceiver(500, 200) as receiver:
        webhook = await _one_event(rig, receiver.url)
        await rig.attempted(webhook, 1)
        await rig.clock.advance(5)
        await rig.attempted(webhook, 2)
    kept = transact(rig.settings.database, lambda tx: tx.one("SELECT failing_since, failures FROM webhook"))
    assert kept == (None, 0)


async def test_a_redirect_to_an_internal_address_is_a_failure_and_is_not_followed(rig: Rig) -> None:
    with WebhookReceiver(200) as inner:
        away = StubResponse(status=302, headers={"Location": inner.url})
        with WebhookReceiver(away) as receiver:
            webhook = await _one_event(rig, receiver.url)
            delivery = await rig.attempted(webhook, 1)
            detail = await rig.detail(webhook, delivery)
        assert (delivery["status"], detail["attempts"][0]["statusCode"]) == ("failed", 302)
        assert inner.received == []


@pytest.mark.both_databases
async def test_a_clock_that_is_put_back_by_an_hour_postpones_an_attempt_by_no_hour(rig: Rig) -> None:
    with WebhookReceiver(500, 200, 200) as receiver:
        webhook = await _one_event(rig, receiver.url)
        await rig.attempted(webhook, 1)
        rig.clock.set_back(3_600)
        await rig.sink()  # wakes the worker
        await rig.attempted(webhook, 1)
        await rig.clock.advance(5 * 1.2 + rig.settings.deliveries.lease_seconds)
        log = await rig.until(webhook, lambda log: log[1]["attemptCount"] == 2)
    assert [one["status"] for one in log] == ["succeeded", "succeeded"]


async def test_a_name_that_changes_to_an_internal_address_is_never_connected_to(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract H15
    responses = [["127.0.0.2"], ["127.0.0.1"]]

    async def resolve(_host: str, _port: int) -> Sequence[Address]:
        return [ip_address(text) for text in (responses.pop(0) if len(responses) > 1 else responses[0])]

    # 127.0.0.2, where no server listens, represents the public address.
    rules = EgressRules(allow_http=True, allowed_networks=(ip_network("127.0.0.2/32"),))
    clock = ManualClock()
    guarded = dataclasses.replace(settings, egress=rules)
    with WebhookReceiver(200) as receiver:
        async with (
            running(guarded, clock=clock, jitter=lambda: 0.5, resolve=resolve) as app,
            api_client(app, make_key()) as http,
        ):
            workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
            rig = Rig(http=http, clock=clock, settings=guarded, workspace=workspace)
            webhook = await _one_event(rig, f"http://rebinding.example:{receiver.port}/")
            await rig.attempted(webhook, 1)
            await rig.clock.advance(5)
            delivery = await rig.attempted(webhook, 2)
            errors = [one["error"].partition(":")[0] for one in (await rig.detail(webhook, delivery))["attempts"]]
        assert errors == ["connection_failed", "unsafe_url"]
        assert receiver.received == []


@pytest.mark.both_databases
async def test_after_a_rotation_both_secrets_verify_until_the_grace_period_ends(
    rig: Rig, receiver: WebhookReceiver
) -> None:
    # contract H10
    webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"])
    old = (await rig.http.get(webhook)).json()["signingSecret"]
    new = (await rig.http.post(f"{webhook}/rotate-secret", json={"gracePeriodSeconds": 60})).json()["signingSecret"]
    await rig.sink()
    received = await arrival(receiver)
    signatures = received.headers["webhook-signature"].split(" ")
    for secret in (old, new):
        assert Webhook(secret).verify(received.body, dict(received.headers)) == received.event
    when = datetime.fromtimestamp(int(received.headers["webhook-timestamp"]), UTC)
    signed = [
        Webhook(secret).sign(received.headers["webhook-id"], when, received.body.decode()) for secret in (new, old)
    ]
    assert signatures == signed, "the newest first"
    await rig.clock.advance(61)
    await rig.sink()
    assert len((await arrival(receiver)).headers["webhook-signature"].split(" ")) == 1


async def test_repeated_rotations_keep_the_newest_five_secrets(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H10
    webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"])
    secrets = [(await rig.http.post(f"{webhook}/rotate-secret")).json()["signingSecret"] for _ in range(7)]
    await rig.sink()
    received = await arrival(receiver)
    assert len(received.headers["webhook-signature"].split(" ")) == 5
    for secret in secrets[-5:]:
        Webhook(secret).verify(received.body, dict(received.headers))


async def test_a_rotation_without_grace_ends_all_older_secrets(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H10
    webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"])
    await rig.http.post(f"{webhook}/rotate-secret")
    await rig.http.post(f"{webhook}/rotate-secret", json={"gracePeriodSeconds": 0})
    await rig.sink()
    assert len((await arrival(receiver)).headers["webhook-signature"].split(" ")) == 1


async def test_an_ordered_webhook_gets_first_attempts_one_at_a_time_and_in_order(rig: Rig) -> None:
    # contract H12
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate), 200) as receiver:
        webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"], inOrder=True)
        for number in range(10):
            await rig.sink(str(number))
        await arrival(receiver)
        assert len(receiver.received) == 1
        gate.set()
        await rig.until(webhook, lambda log: all(one["status"] == "succeeded" for one in log))
        assert [one.event["data"]["object"]["label"] for one in receiver.received] == [str(n) for n in range(10)]


@pytest.mark.both_databases
async def test_different_keys_do_not_wait_for_each_other_and_one_key_keeps_its_order(rig: Rig) -> None:
    # contract H12
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate)) as receiver:
        sink = await rig.sink()
        webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.entry.*", "data_sink.deleted"])
        keys = [f"k{number}" for number in range(8)]
        for value in ("1", "2", "3"):
            for key in keys:
                await rig.push(sink, key, value)
        await rig.http.delete(f"{sink}/k0")
        await rig.push(sink, "k0", "again")
        assert (await rig.http.delete(sink)).status_code == 200
        first = {(await arrival(receiver)).event["data"]["object"]["key"] for _ in keys}
        assert first == set(keys), "the first deliveries of all keys are in flight together"
        assert len(receiver.received) == len(keys)
        gate.set()
        await rig.until(webhook, lambda log: all(one["status"] == "succeeded" for one in log))
        events = [one.event for one in receiver.received]
    reported = [(event["type"].rpartition(".")[2], event["data"]["object"]) for event in events[:-1]]
    assert events[-1]["type"] == "data_sink.deleted", "events of the sink follow those of its entries"
    for key in keys[1:]:
        assert [entry["value"] for _, entry in reported if entry["key"] == key] == ["1", "2", "3"]
    verbs = [verb for verb, entry in reported if entry["key"] == "k0"]
    assert verbs == ["created", "updated", "updated", "deleted", "created"]


async def test_one_receiver_gets_only_its_share_of_the_concurrent_deliveries(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract H12
    narrow = dataclasses.replace(
        settings, deliveries=dataclasses.replace(settings.deliveries, at_once=4, at_once_to_one=3)
    )
    clock = ManualClock()
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate)) as slow, WebhookReceiver() as fast:
        async with running(narrow, clock=clock, jitter=lambda: 0.5) as app, api_client(app, make_key()) as http:
            workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
            rig = Rig(http=http, clock=clock, settings=narrow, workspace=workspace)
            await rig.webhook(slow.url, dataEvents=["data_sink.created"])
            for number in range(6):
                await rig.sink(str(number))
            for _ in range(3):
                await arrival(slow)
            assert len(slow.received) == 3
            webhook = await rig.webhook(fast.url, dataEvents=["data_sink.created"])
            for number in range(6):
                await rig.sink(str(number))
            await rig.until(webhook, lambda log: [one["status"] for one in log] == ["succeeded"] * 6)
            assert len(slow.received) == 3
            gate.set()


def _batches(receiver: WebhookReceiver) -> list[list[str]]:
    return [
        [f"{event['data']['object']['key']}={event['data']['object']['value']}" for event in one.event["events"]]
        for one in receiver.received
        if one.event["type"] == "data_sink.entry.batch"
    ]


@pytest.mark.both_databases
async def test_events_of_entries_share_requests_if_the_webhook_requests_it(rig: Rig) -> None:
    # contract H17
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate), 200) as receiver:
        sink = await rig.sink()
        webhook = await rig.webhook(
            receiver.url, dataEvents=["data_sink.entry.*", "data_sink.created"], batchEntries=True
        )
        secret = (await rig.http.get(webhook)).json()["signingSecret"]
        await rig.push(sink, "a", "1")
        first = await arrival(receiver)
        for value in ("2", "3"):
            for key in ("a", "b"):
                await rig.push(sink, key, value)
        await rig.sink("between")
        await rig.push(sink, "b", "4")
        gate.set()
        log = await rig.until(webhook, lambda log: all(one["status"] == "succeeded" for one in log))
        assert _batches(receiver) == [["a=1"], ["a=2", "b=2", "a=3", "b=3"], ["b=4"]]
        assert [one.event["type"] for one in receiver.received][2] == "data_sink.created"
        assert Webhook(secret).verify(first.body, dict(first.headers)) == first.event
        assert first.headers["webhook-id"] == first.event["id"]
        ids = [event["id"] for one in receiver.received for event in one.event.get("events", [one.event])]
    assert sorted(ids) == sorted(one["eventId"] for one in log)
    assert [one["attemptCount"] for one in log] == [1] * 7


async def test_a_failed_batch_is_repeated_with_the_same_events(rig: Rig) -> None:
    # contract H17
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate, status=500), 500, 200) as receiver:
        sink = await rig.sink()
        webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.entry.*"], batchEntries=True)
        await rig.push(sink, "a", "1")
        await arrival(receiver)
        for key in ("b", "c"):
            await rig.push(sink, key, "1")
        gate.set()
        await rig.until(webhook, lambda log: [one["status"] for one in log] == ["failed"] * 3)
        await rig.clock.advance(5)
        await rig.until(webhook, lambda log: [one["status"] for one in log] == ["succeeded"] * 3)
        assert [sorted(batch) for batch in _batches(receiver)] == [["a=1"], ["b=1", "c=1"], ["a=1", "b=1", "c=1"]]


async def test_a_batch_is_bounded_in_events_and_bytes(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract H17
    narrow = dataclasses.replace(
        settings, deliveries=dataclasses.replace(settings.deliveries, batch_events=3, batch_bytes=2_000)
    )
    clock = ManualClock()
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate), 200) as receiver:
        async with running(narrow, clock=clock, jitter=lambda: 0.5) as app, api_client(app, make_key()) as http:
            workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
            rig = Rig(http=http, clock=clock, settings=narrow, workspace=workspace)
            sink = await rig.sink()
            webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.entry.*"], batchEntries=True)
            await rig.push(sink, "a", "")
            await arrival(receiver)
            for key, value in (("b", ""), ("c", ""), ("d", ""), ("e", "x" * 1_500), ("f", "")):
                await rig.push(sink, key, value)
            gate.set()
            await rig.until(webhook, lambda log: [one["status"] for one in log] == ["succeeded"] * 6)
            assert [[text[0] for text in batch] for batch in _batches(receiver)] == [
                ["a"],
                ["b", "c", "d"],
                ["e"],
                ["f"],
            ]


async def test_a_waiting_retry_does_not_delay_later_events(rig: Rig) -> None:
    # contract H12
    with WebhookReceiver(500, 200) as receiver:
        webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"])
        await rig.sink("first")
        await rig.attempted(webhook, 1)
        await rig.sink("second")
        log = await rig.until(webhook, lambda log: log[0]["status"] == "succeeded")
        assert [one["status"] for one in log] == ["succeeded", "failed"]
        await rig.clock.advance(5)
        await rig.until(webhook, lambda log: log[1]["status"] == "succeeded")
        labels = [one.event["data"]["object"]["label"] for one in receiver.received]
    assert labels == ["first", "second", "first"]


async def test_a_hanging_receiver_delays_no_other_receiver(rig: Rig, receiver: WebhookReceiver) -> None:
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate)) as hanging:
        await rig.webhook(hanging.url, dataEvents=["data_sink.created"], inOrder=True)
        await rig.webhook(receiver.url, dataEvents=["data_sink.created"], inOrder=True)
        for number in range(3):
            await rig.sink(str(number))
        for number in range(3):
            assert (await arrival(receiver)).event["data"]["object"]["label"] == str(number)
        assert len(hanging.received) == 1
        gate.set()


@pytest.mark.both_databases
async def test_coalescing_sends_the_last_pending_update_with_the_values_sent_before(rig: Rig) -> None:
    # contract H12
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate), 200) as receiver:
        members = {"dataEvents": ["data_sink.entry.updated"], "inOrder": True}
        sink = await rig.sink()
        for key in ("a", "b"):
            await rig.push(sink, key, "0")
        webhook = await rig.webhook(receiver.url, coalesce=True, **members)
        await rig.push(sink, "a", "1")
        await arrival(receiver)
        for value in ("2", "3", "4"):
            await rig.push(sink, "a", value)
            await rig.push(sink, "b", value)
        gate.set()
        await rig.until(webhook, lambda log: all(one["status"] == "succeeded" for one in log))
        reported = [one.event["data"] for one in receiver.received]
    assert [(data["object"]["key"], data["object"]["value"], data["previous"]["value"]) for data in reported] == [
        ("a", "1", "0"),
        ("a", "4", "1"),
        ("b", "4", "0"),
    ]


async def test_coalescing_does_not_move_an_update_before_an_earlier_event(rig: Rig) -> None:
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate), 200) as receiver:
        sink = await rig.sink()
        await rig.push(sink, "a", "0")
        webhook = await rig.webhook(receiver.url, coalesce=True, dataEvents=["data_sink.entry.*", "data_sink.created"])
        await rig.sink("holds the line")
        await arrival(receiver)
        entry = "123e4567-e89b-12d3-a456-426614174000"
        await rig.http.delete(f"{sink}/a")
        for _ in range(2):
            await rig.http.post(sink, json={"key": "a", "id": entry, "value": "0", "dataType": "t"})
            await rig.push(sink, "a", "1")
            await rig.http.delete(f"{sink}/a")
        gate.set()
        await rig.until(webhook, lambda log: all(one["status"] == "succeeded" for one in log))
        verbs = [one.event["type"].rpartition(".")[2] for one in receiver.received[1:]]
    assert verbs == ["deleted", "created", "updated", "deleted", "created", "updated", "deleted"]


@pytest.mark.both_databases
async def test_deleting_a_webhook_cancels_its_pending_deliveries(rig: Rig) -> None:
    # contract H19
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate), 200) as receiver:
        webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"], inOrder=True)
        for _ in range(3):
            await rig.sink()
        await arrival(receiver)
        assert (await rig.http.delete(webhook)).status_code == 200
        gate.set()
        other = await rig.webhook(receiver.url, dataEvents=["data_sink.created"])
        await rig.sink("last")
        await rig.until(other, lambda log: log[0]["status"] == "succeeded")
        assert len(receiver.received) == 2
    assert transact(rig.settings.database, lambda tx: tx.one("SELECT count(*) FROM delivery")) == (1,)


async def test_configured_headers_and_the_token_of_the_connection_are_sent(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H5
    grant = StubResponse(body=b'{"access_token": "first", "token_type": "Bearer", "expires_in": 3600}')
    renewed = StubResponse(body=b'{"access_token": "second", "expires_in": 3600}')
    with WebhookReceiver(grant, renewed) as token_server, WebhookReceiver(200, 401, 200) as guarded:
        oauth = {"tokenUrl": token_server.url, "clientId": "c:1", "clientSecret": "s%", "scope": "a b"}
        webhook = await rig.webhook(
            guarded.url,
            dataEvents=["data_sink.created"],
            headers=["X-Tenant: 7", "Authorization: Basic old"],
            oauthConnection=oauth,
            inOrder=True,
        )
        for _ in range(3):
            await rig.sink()
        await rig.until(webhook, lambda log: len(log) == 3 and all(one["status"] == "succeeded" for one in log))
        assert [one.headers["authorization"] for one in guarded.received] == [
            "Bearer first",
            "Bearer first",
            "Bearer second",
            "Bearer second",
        ]
        assert {one.headers["x-tenant"] for one in guarded.received} == {"7"}
        asked = token_server.received
        assert len(asked) == 2
        assert asked[0].body == b"grant_type=client_credentials&scope=a+b"
        pair = base64.b64decode(asked[0].headers["authorization"].removeprefix("Basic ")).decode()
        assert pair == "c%3A1:s%25"
    assert receiver.received == []


async def test_concurrent_deliveries_request_one_token(rig: Rig, receiver: WebhookReceiver) -> None:
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate, body=b'{"access_token": "first"}')) as token_server:
        oauth = {"tokenUrl": token_server.url, "clientId": "c", "clientSecret": "s"}
        webhook = await rig.webhook(receiver.url, dataEvents=["data_sink.created"], oauthConnection=oauth)
        for _ in range(5):
            await rig.sink()
        await arrival(token_server)
        gate.set()
        await rig.until(webhook, lambda log: [one["status"] for one in log] == ["succeeded"] * 5)
        assert len(token_server.received) == 1


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (StubResponse(status=500), "The token server responded 500"),
        (StubResponse(body=b"{}"), "has no access_token"),
        (StubResponse(body=b'{"access_token": "a\\nb"}'), "has no access_token of visible ASCII"),
        (StubResponse(body=b'{"access_token": "\xff"}'), "has no access_token"),
        (StubResponse(body=b"[" * 5_000), "has no access_token"),
        (
            StubResponse(body=b'{"access_token": "a", "scope": ' + b"[" * 5_000 + b"}"),
            "has no access_token",
        ),
    ],
)
async def test_without_a_token_nothing_is_sent_and_the_log_has_the_reason(
    rig: Rig, response: StubResponse, why: str
) -> None:
    with WebhookReceiver(response) as token_server, WebhookReceiver(200) as guarded:
        oauth = {"tokenUrl": token_server.url, "clientId": "c", "clientSecret": "very-hidden"}
        webhook = await _one_event(rig, guarded.url, oauthConnection=oauth)
        delivery = await rig.attempted(webhook, 1)
        detail = await rig.detail(webhook, delivery)
        assert why in detail["attempts"][0]["error"]
        assert "very-hidden" not in str(detail)
        assert guarded.received == []


@pytest.mark.parametrize("seconds", ["-1e308", "1e308", "-1", "0", '"3600"', '"soon"', '"9999999999999999999"', "null"])
async def test_a_token_with_any_expiry_is_sent(rig: Rig, receiver: WebhookReceiver, seconds: str) -> None:
    with WebhookReceiver(
        StubResponse(body=b'\xef\xbb\xbf{"access_token": "a", "expires_in": %s}' % seconds.encode())
    ) as token_server:
        oauth = {"tokenUrl": token_server.url, "clientId": "c", "clientSecret": "s"}
        webhook = await _one_event(rig, receiver.url, oauthConnection=oauth)
        assert (await rig.attempted(webhook, 1))["status"] == "succeeded"


@pytest.mark.parametrize(
    "header",
    ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 9999 00:00:00 -9999", "9" * 400, "\u00b2", ""],
)
async def test_an_invalid_retry_after_is_recorded_as_an_ordinary_failure(rig: Rig, header: str) -> None:
    with WebhookReceiver(StubResponse(status=503, headers={"Retry-After": header}), 200) as receiver:
        webhook = await _one_event(rig, receiver.url)
        assert (await rig.attempted(webhook, 1))["status"] == "failed"
        await rig.sink("second")
        await rig.until(webhook, lambda log: log[0]["status"] == "succeeded")


async def test_an_attempt_that_raises_is_recorded_and_delays_nothing(
    settings: WorkspacedSettings, make_key: Callable[..., str], receiver: WebhookReceiver
) -> None:
    responses: list[Exception | None] = [RuntimeError("the name server speaks in riddles"), None]

    async def resolve(_host: str, _port: int) -> Sequence[Address]:
        if (error := responses.pop(0)) is not None:
            raise error
        return [ip_address("127.0.0.1")]

    clock = ManualClock()
    async with (
        running(settings, clock=clock, jitter=lambda: 0.5, resolve=resolve) as app,
        api_client(app, make_key()) as http,
    ):
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        rig = Rig(http=http, clock=clock, settings=settings, workspace=workspace)
        with capture_logs():
            webhook = await _one_event(rig, f"http://receiver.example:{receiver.port}/")
            first = await rig.attempted(webhook, 1)
        assert first["status"] == "failed"
        error = (await rig.detail(webhook, first))["attempts"][0]["error"]
        assert error.startswith("internal: ")
        assert "RuntimeError" in error
        await rig.sink("second")
        await rig.until(webhook, lambda log: log[0]["status"] == "succeeded")


@pytest.mark.both_databases
async def test_the_log_is_filtered_and_paged_and_shows_responses_to_the_owner_only(
    rig: Rig, make_key: Callable[..., str]
) -> None:
    # contract G27, H13, WH8, WH9
    responses = (StubResponse(status=500, body=b"no\0 " + b"x" * 5_000), 200)
    with WebhookReceiver(*responses) as receiver:
        key = {"x-api-key": make_key(name="svc:owner"), "ClientId": "tests"}
        made = await rig.http.post(
            "/v1/webhooks",
            json={"url": receiver.url, "dataEvents": ["data_sink.created"], "inOrder": True},
            headers=key,
        )
        webhook = made.headers["Location"]
        for _ in range(3):
            await rig.sink()
        log = await rig.until(webhook, lambda log: len(log) == 3 and all(one["attemptCount"] for one in log))
        assert [one["status"] for one in log] == ["succeeded", "succeeded", "failed"]
        assert [one["sequence"] for one in log] == [3, 2, 1]
        assert await rig.deliveries(webhook, "?status=failed") == log[2:]
        assert await rig.deliveries(webhook, "?take=1&skip=1") == log[1:2]
        target, paged = f"{webhook}/deliveries?take=2", list[dict[str, Any]]()
        while target:
            page = await rig.http.get(target)
            paged += page.json()
            target = page.links.get("next", {}).get("url", "")
        assert paged == log
        for cursor in (
            "x",
            "WyIgQVNDIixbIngiXV0",
            "WyIgQVNDIixbIjEyM2U0NTY3LWU4OWItMTJkMy1hNDU2LTQyNjYxNDE3NDAwMCJdXQ",
        ):
            assert (await rig.http.get(f"{webhook}/deliveries?cursor={cursor}")).status_code == 400
        for query in ("?status=lost", "?take=0", "?skip=-1"):
            assert (await rig.http.get(f"{webhook}/deliveries{query}")).status_code == 400
        path = f"{webhook}/deliveries/{log[2]['id']}"
        seen = (await rig.http.get(path)).json()
        own = (await rig.http.get(path, headers=key)).json()
        assert (seen["attempts"][0]["response"], "event" in seen) == (None, False)
        assert own["attempts"][0]["response"] == "no� " + "x" * 1_020
        assert own["event"]["sequence"] == 1
        assert (await rig.http.get(f"{webhook}/deliveries/123e4567-e89b-12d3-a456-426614174000")).status_code == 404
        other_caller = {"x-api-key": make_key(name="other", role="editor", workspace_id=rig.workspace)}
        for method, target in (("GET", path), ("GET", f"{webhook}/deliveries"), ("POST", f"{path}/redeliver")):
            assert (await rig.http.request(method, target, headers=other_caller)).status_code == 404


async def test_a_trial_is_sent_regardless_of_the_subscription(rig: Rig, receiver: WebhookReceiver) -> None:
    # contract H8, H13, WH11
    webhook = await rig.webhook(receiver.url, dataEvents=[], ignoreClientIds=["tests"])
    response = await rig.http.post(f"{webhook}/test")
    assert response.status_code == 202
    received = await arrival(receiver)
    assert (received.event["type"], received.event["workspaceId"], received.event["sequence"]) == (
        "webhook.test",
        None,
        0,
    )
    assert received.event["data"]["object"] == {"webhookId": webhook.rpartition("/")[2]}
    assert received.headers["webhook-id"] == response.json()["eventId"]
    assert (await rig.attempted(webhook, 1))["status"] == "succeeded"


@pytest.mark.both_databases
async def test_old_events_are_deleted_with_their_deliveries(
    settings: WorkspacedSettings, make_key: Callable[..., str], receiver: WebhookReceiver
) -> None:
    # contract H13
    async with running(settings) as app, api_client(app, make_key()) as http:
        webhook = (await http.post("/v1/webhooks", json={"url": receiver.url})).headers["Location"]
        for _ in range(2):
            await http.post(f"{webhook}/test")
            await arrival(receiver)
        month = {"gone": 31 * _DAY * 1_000}
        transact(
            settings.database,
            lambda tx: tx.run("UPDATE event SET created_at = created_at - :gone WHERE number = 1", month),
        )
        await app.run_maintenance()
        assert len((await http.get(f"{webhook}/deliveries")).json()) == 1


@pytest.mark.both_databases
async def test_deliveries_interrupted_by_a_shutdown_are_released_and_sent_by_the_next_process(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract P5
    gate = threading.Event()
    hasty = dataclasses.replace(settings, deliveries=dataclasses.replace(settings.deliveries, stop_seconds=0.05))
    with WebhookReceiver(StubResponse(gate=gate), 200) as receiver:
        async with running(hasty) as app, api_client(app, make_key()) as http:
            webhook = (await http.post("/v1/webhooks", json={"url": receiver.url})).headers["Location"]
            await http.post(f"{webhook}/test")
            first = await arrival(receiver)
        kept = transact(settings.database, lambda tx: tx.all("SELECT status, lease, attempts FROM delivery"))
        assert kept == [("pending", None, 0)]
        async with running(settings):
            second = await arrival(receiver)
        assert second.headers["webhook-id"] == first.headers["webhook-id"]


@pytest.mark.both_databases
async def test_an_outcome_after_the_lease_was_lost_is_not_written(rig: Rig) -> None:
    # contract H14
    gate = threading.Event()
    with WebhookReceiver(StubResponse(gate=gate, status=500), 200) as receiver:
        webhook = await _one_event(rig, receiver.url)
        await arrival(receiver)
        transact(rig.settings.database, lambda tx: tx.run("UPDATE delivery SET lease = 'another process'"))
        with capture_logs() as lines:
            gate.set()
            async with asyncio.timeout(30):
                while not any(line.get("status") == "lease_lost" for line in lines):  # noqa: ASYNC110  a log line sends no signal
                    await asyncio.sleep(0.005)
        assert [one["attemptCount"] for one in await rig.deliveries(webhook)] == [0]
        await rig.clock.advance(60)
        assert (await rig.attempted(webhook, 1))["status"] == "succeeded"


class Serve(Protocol):
    def __call__(
        self, key: bytes | None, *, lost: bytes | None = None
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]: ...


@pytest.fixture
def serve(settings: WorkspacedSettings, make_key: Callable[..., str]) -> Serve:
    """Return a context manager that runs the service with an encryption key instead of a lost one, and yields a client."""

    @asynccontextmanager
    async def serving(key: bytes | None, *, lost: bytes | None = None) -> AsyncIterator[httpx.AsyncClient]:
        fingerprint = SecretBox(lost).fingerprint or ""
        async with (
            running(dataclasses.replace(settings, encryption_key=key, lost_encryption_key=fingerprint)) as app,
            api_client(app, make_key()) as http,
        ):
            yield http

    return serving


OLD_KEY, NEW_KEY = b"o" * 32, b"n" * 32


async def test_a_host_with_another_encryption_key_does_not_start_and_says_which(serve: Serve) -> None:
    # contract P8
    async with serve(OLD_KEY):
        pass
    for other, shown in ((NEW_KEY, "has the fingerprint"), (None, "is not set")):
        with pytest.raises(StorageUnusable, match=f"WORKSPACED_ENCRYPTION_KEY {shown}"):
            async with serve(other):
                pytest.fail("it started")
    async with serve(OLD_KEY):
        pass


async def test_without_the_encryption_key_sealed_webhooks_wait_and_others_go_on(
    serve: Serve, receiver: WebhookReceiver
) -> None:
    # contract H3
    with WebhookReceiver() as other:
        async with serve(OLD_KEY) as http:
            sealed = (
                await http.post("/v1/webhooks", json={"url": receiver.url, "dataEvents": ["workspace.created"]})
            ).headers["Location"]
        async with serve(None, lost=OLD_KEY) as http:
            await http.post("/v1/webhooks", json={"url": other.url, "dataEvents": ["workspace.created"]})
            shown = (await http.get(sealed)).json()
            assert (shown["enabled"], shown["signingSecret"]) == (True, "whsec_…")
            assert "WORKSPACED_ENCRYPTION_KEY" in shown["disabledReason"]
            for change in (http.patch(sealed, json={"label": "x"}), http.post(f"{sealed}/rotate-secret")):
                refused = await change
                assert (refused.status_code, refused.json()["code"]) == (503, "secrets_sealed")
            await http.post("/v1/workspace", json={"label": "sent later"})
            assert (await arrival(other)).event["type"] == "workspace.created"
        async with serve(OLD_KEY):
            assert (await arrival(receiver)).event["data"]["object"]["label"] == "sent later"


@pytest.mark.both_databases
async def test_a_webhook_with_secrets_of_another_key_is_disabled_and_the_others_go_on(
    serve: Serve, receiver: WebhookReceiver
) -> None:
    # contract H3, H11
    with WebhookReceiver() as other:
        async with serve(OLD_KEY) as http:
            sealed = (
                await http.post("/v1/webhooks", json={"url": receiver.url, "dataEvents": ["workspace.created"]})
            ).headers["Location"]
        async with serve(NEW_KEY, lost=OLD_KEY) as http:
            await http.post("/v1/webhooks", json={"url": other.url, "dataEvents": ["workspace.created"]})
            with capture_logs() as lines:
                await http.post("/v1/workspace", json={"label": "w"})
                assert (await arrival(other)).event["type"] == "workspace.created"
            assert [line["reason"] for line in lines if line["event"] == "webhook_disabled"] == [store.SEALED_REASON]
            found = {one["url"]: one for one in (await http.get("/v1/webhooks")).json()}
            assert found[receiver.url]["enabled"] is False
            assert found[receiver.url]["disabledReason"] == store.SEALED_REASON
            assert found[other.url]["enabled"] is True
        async with serve(OLD_KEY, lost=NEW_KEY) as http:  # the key was restored
            assert (await arrival(receiver)).event["data"]["object"]["label"] == "w"
            assert (await http.get(sealed)).json()["enabled"] is True


@pytest.mark.both_databases
async def test_a_damaged_webhook_is_disabled_and_the_others_go_on(rig: Rig) -> None:
    with WebhookReceiver() as damaged, WebhookReceiver() as other:
        first = await rig.webhook(damaged.url, dataEvents=["data_sink.created"])
        await rig.webhook(other.url, dataEvents=["data_sink.created"])
        transact(
            rig.settings.database,
            lambda tx: tx.run(
                "UPDATE webhook SET headers = :damage WHERE id = :id", {"damage": b"\0{", "id": first[-36:]}
            ),
        )
        with capture_logs() as lines:
            await rig.sink()
            await arrival(other)
        (reason,) = [line["reason"] for line in lines if line["event"] == "webhook_disabled"]
        assert "is damaged" in reason
        assert damaged.received == []


async def test_nothing_more_is_sent_to_a_webhook_of_an_owner_without_a_valid_key(
    rig: Rig, make_key: Callable[..., str]
) -> None:
    # contract H2
    owner = make_key(name="svc:leaves")
    with WebhookReceiver(500) as receiver:
        made = await rig.http.post("/v1/webhooks", json={"url": receiver.url}, headers={"x-api-key": owner})
        webhook = made.headers["Location"]
        await rig.sink()
        await arrival(receiver)
        await rig.attempted(webhook, 1)
        assert (await rig.http.delete(f"/v1/api-keys/{owner.split('_')[1]}")).is_success
        await rig.clock.advance(86_400)
        async with asyncio.timeout(30):
            while (shown := (await rig.http.get(webhook)).json())["enabled"]:  # noqa: ASYNC110  no signal reaches a caller
                await asyncio.sleep(0.005)
        assert shown["disabledReason"] == "its owner has no valid API key"
    assert len(receiver.received) == 1


@pytest.mark.both_databases
async def test_two_processes_share_the_deliveries_and_nothing_is_sent_twice(
    settings: WorkspacedSettings, make_key: Callable[..., str], receiver: WebhookReceiver
) -> None:
    # contract H14
    key = make_key()
    async with (
        running(settings) as one,
        running(settings) as other,
        api_client(one, key) as http,
        api_client(other, key) as second,
    ):
        webhook = (await http.post("/v1/webhooks", json={"url": receiver.url})).headers["Location"]
        for caller in (http, second) * 10:
            assert (await caller.post(f"{webhook}/test")).status_code == 202
        ids = [(await arrival(receiver)).headers["webhook-id"] for _ in range(20)]
    assert len(set(ids)) == 20
    assert len(receiver.received) == 20
