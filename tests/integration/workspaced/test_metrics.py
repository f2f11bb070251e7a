"""Metrics of one process: counts, gauges from either database, and values that are never labels."""

from __future__ import annotations

import json
from typing import cast

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ingestd.process.metric_format import exposition
from workspaced.app import Application
from workspaced.telemetry.levels import Levels
from workspaced.telemetry.metric_families import level_families


def _application(transport: httpx.ASGITransport) -> Application:
    return cast("Application", transport.app)


def _numbers(text: bytes) -> dict[str, float]:
    return {
        f"{sample.name}{json.dumps(sample.labels, sort_keys=True) if sample.labels else ''}": sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.both_databases
async def test_both_databases_report_their_gauges(transport: httpx.ASGITransport, sink: str) -> None:
    levels = await _application(transport).levels()
    assert (levels.reached, levels.oldest_ms) == (True, None)
    assert levels.deliveries == {"pending": 0, "failed": 0}
    assert levels.webhooks == {"enabled": 0, "disabled": 0}
    assert levels.conversions == {"pending": 0, "in_progress": 0}
    assert (levels.database_bytes or 0) > 100_000


async def test_no_label_has_a_value_that_a_client_chose(
    transport: httpx.ASGITransport, http: httpx.AsyncClient, sink: str
) -> None:
    await http.post(f"{sink}/mass", json={"key": "secret-key", "value": "secret-value"})
    await http.get(f"{sink}/missing-key")
    await http.request("BREW", f"{sink}/teapot-key")
    await http.get("/chosen/by/client", headers={"x-api-key": "edw_chosen"})
    text, content_type = exposition((), _application(transport).metrics.registry, accept="")
    assert content_type.startswith("text/plain; version=0.0.4")
    for chosen in (sink.rpartition("/")[2], "secret", "missing-key", "BREW", "teapot", "chosen"):
        assert chosen.encode() not in text, chosen
    metrics = _numbers(text)
    assert metrics['workspaced_http_requests_total{"method": "other", "operation": "none", "status": "405"}'] == 1
    assert metrics['workspaced_http_requests_total{"method": "GET", "operation": "none", "status": "404"}'] == 1
    assert metrics['workspaced_http_refusals_total{"code": "method_not_allowed"}'] == 1
    assert metrics["workspaced_http_requests_in_flight"] == 0


async def test_a_repeated_response_counts_no_written_entry(
    transport: httpx.ASGITransport, http: httpx.AsyncClient, sink: str
) -> None:
    items = [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]
    for _ in range(2):
        response = await http.post(f"{sink}/mass", json=items, headers={"Idempotency-Key": "once"})
        assert response.status_code == 200
    await http.patch(f"{sink}/a", json={"value": "3"})
    await http.delete(f"{sink}/b")
    metrics = _numbers(exposition((), _application(transport).metrics.registry, accept="")[0])
    written = {name: value for name, value in metrics.items() if name.startswith("workspaced_entries_written_total")}
    assert written == {
        'workspaced_entries_written_total{"outcome": "created"}': 2,
        'workspaced_entries_written_total{"outcome": "updated"}': 1,
        'workspaced_entries_written_total{"outcome": "deleted"}': 1,
    }


def test_a_database_that_does_not_respond_is_a_metric_and_no_failure() -> None:
    text, _ = exposition(level_families(Levels(reached=False), now_ms=0), accept="")
    assert _numbers(text) == {"workspaced_database_up": 0}


def test_the_age_of_the_oldest_delivery_is_in_seconds() -> None:
    families = level_families(Levels(deliveries={"pending": 2}, oldest_ms=4_000), now_ms=10_500)
    metrics = _numbers(exposition(families, accept="")[0])
    assert metrics["workspaced_webhook_queue_oldest_age_seconds"] == 6.5
    assert metrics['workspaced_webhook_queue_deliveries{"state": "pending"}'] == 2
