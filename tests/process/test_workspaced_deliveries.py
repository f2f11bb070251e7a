"""Deliveries when the process of the real service is killed during one."""

from __future__ import annotations

import base64
import os
import signal
import threading
from pathlib import Path

import httpx
from standardwebhooks.webhooks import Webhook

from tests.support.webhook_receiver import StubResponse, WebhookReceiver
from tests.support.workspaced_process import WorkspaceService, new_key, workspaced


def _webhook(http: httpx.Client, receiver: WebhookReceiver) -> str:
    created = http.post("/v1/webhooks", json={"url": receiver.url, "dataEvents": ["data_sink.*"], "inOrder": True})
    assert created.status_code == 201, created.text
    return str(created.headers["Location"])


def _sink(http: httpx.Client) -> str:
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    return str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])


def test_deliveries_of_a_killed_process_are_repeated_when_its_lease_ends(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    environment = {"WORKSPACED_LEASE_SECONDS": "2"}
    with WebhookReceiver(StubResponse(gate=threading.Event()), 200) as receiver:
        with WorkspaceService(data, "--dev", environment=environment) as service, service.client(key) as http:
            webhook = _webhook(http, receiver)
            _sink(http)
            held = receiver.next()
            service.kill()
        with WorkspaceService(data, "--dev", environment=environment) as service, service.client(key) as http:
            again = receiver.next()
            assert again.headers["webhook-id"] == held.headers["webhook-id"]
            assert again.body == held.body
            later = float(again.headers["webhook-timestamp"]) - float(held.headers["webhook-timestamp"])
            assert later >= 1, "not before the lease ended"
            secret = http.get(webhook).json()["signingSecret"]
            assert Webhook(secret).verify(again.body, dict(again.headers)) == again.event


def test_a_second_process_delivers_what_a_killed_one_held(tmp_path: Path) -> None:
    # contract H14
    data = tmp_path / "data"
    key = new_key(data)
    environment = {"WORKSPACED_LEASE_SECONDS": "2"}
    with (
        WebhookReceiver(StubResponse(gate=threading.Event()), 200) as receiver,
        WorkspaceService(data, "--dev", environment=environment) as survivor,
        WorkspaceService(data, "--dev", environment=environment) as victim,
        victim.client(key) as http,
    ):
        _webhook(http, receiver)
        _sink(http)
        held = receiver.next()
        victim.kill()
        with survivor.client(key) as other:
            _sink(other)  # wakes the other process, which finds the lease and waits for its end
        assert receiver.next().headers["webhook-id"] == held.headers["webhook-id"]
        assert receiver.next().event["type"] == "data_sink.created"


def test_two_failures_and_a_success_are_three_attempts_and_sigterm_ends_cleanly(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    environment = {
        "WORKSPACED_RETRY_SECONDS": "0,0.2,0.2,0.2",
        "WORKSPACED_ENCRYPTION_KEY": base64.b64encode(os.urandom(32)).decode(),
    }
    with WebhookReceiver(500, 500, 200) as receiver:
        with WorkspaceService(data, "--dev", environment=environment) as service, service.client(key) as http:
            webhook = _webhook(http, receiver)
            secret = http.get(webhook).json()["signingSecret"]
            _sink(http)
            assert len({receiver.next().headers["webhook-id"] for _ in range(3)}) == 1
            assert service.stop(signal.SIGTERM) == 0
            attempts = [line for line in service.events if line["event"] == "delivery_attempted"]
            assert [line["status"] for line in attempts] == ["failed", "failed", "succeeded"]
            assert secret not in service.log
        assert all(secret.encode() not in file.read_bytes() for file in data.iterdir() if file.is_file())


def test_an_invalid_webhook_setting_is_named_and_no_secret_is_quoted(tmp_path: Path) -> None:
    for name, text in (
        ("WORKSPACED_ENCRYPTION_KEY", "c2hvcnQ="),
        ("WORKSPACED_RETRY_SECONDS", "soon"),
        ("WORKSPACED_ALLOWED_CIDRS", "10.0.0.1/8"),
    ):
        refused = workspaced("serve", "--data", str(tmp_path), "--port", "0", environment={name: text})
        assert (refused.returncode, len(refused.stderr.splitlines())) == (78, 1)
        assert name in refused.stderr
        assert "c2hvcnQ=" not in refused.stderr
