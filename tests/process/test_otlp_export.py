"""The export of spans and log records to a collector of OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.daemon_process import DEADLINE_SECONDS, environment
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import listening_daemon, pipeline, write_listening_configuration
from tests.support.otlp_collector import OtlpCollector, attributes_of

FAST_EXPORT = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_BLRP_SCHEDULE_DELAY": "50"}


def scene(folder: Path, url: str, file: str) -> Path:
    (folder / "drop").mkdir()
    (folder / "drop" / file).write_text("part,mass\n1,0.10\n2,0.20\n,0.30\n")
    return write_listening_configuration(folder, url, [pipeline("masses", {"path": "drop"})])


def dropped(client: httpx.Client) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [one for family in families for one in family.samples]
    return {one.labels["signal"]: one.value for one in samples if one.name == "ingestd_telemetry_dropped_total"}


def test_runs_requests_and_log_lines_arrive_with_their_secrets_masked(tmp_path: Path) -> None:
    with DocumentServer() as server, OtlpCollector() as collector:
        server.workspace("Bench")
        config = scene(tmp_path, server.url, "test-key.csv")  # the API key of the configuration
        headers = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20collector-token"}
        extra = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_RESOURCE_ATTRIBUTES": "site=A",
            **headers,
            **FAST_EXPORT,
        }
        with listening_daemon(tmp_path, config, **extra) as (daemon, client):
            collector.wait_for(
                lambda it: (
                    {"run", "request"} <= {span.name for span in it.spans}
                    and "partition_read" in {record.event_name for record in it.records}
                )
            )
            assert dropped(client) == {"traces": 0, "logs": 0}
            assert daemon.stop() == 0
        run = next(span for span in collector.spans if span.name == "run")
        request = next(span for span in collector.spans if span.name == "request")
        assert attributes_of(run)["ingestd.pipeline"] == "masses"
        assert attributes_of(run)["ingestd.partition"] == "***.csv"
        assert (attributes_of(run)["ingestd.records"], attributes_of(run)["ingestd.rejected"]) == (3, 1)
        assert attributes_of(request)["ingestd.sink"] == "Sink masses in Bench"
        assert attributes_of(request)["ingestd.entries"] >= 1
        line = daemon.wait_for("partition_read")
        assert abs((run.end_time_unix_nano - run.start_time_unix_nano) / 1e9 - line["seconds"]) < 1e-6
        parts = {span.name: span for span in collector.spans if span.parent_span_id == run.span_id}
        assert list(parts) == ["read", "map", "store"]
        assert {span.trace_id for span in parts.values()} == {run.trace_id}
        assert parts["read"].start_time_unix_nano == run.start_time_unix_nano
        for name in ("map", "store"):
            assert line[f"{name}_seconds"] > 0
            length = (parts[name].end_time_unix_nano - parts[name].start_time_unix_nano) / 1e9
            assert length == pytest.approx(min(line[f"{name}_seconds"], line["seconds"]), abs=1e-3)
        record = next(one for one in collector.records if one.event_name == "partition_read")
        fields = attributes_of(record)
        assert fields == {name: line[name] for name in line if name not in {"timestamp", "level", "event"}}
        assert (record.severity_text, fields["partition"]) == ("INFO", "***.csv")
        assert "daemon_stopped" in {one.event_name for one in collector.records}, (
            "the last lines are exported at the end"
        )
        for resource in collector.resources:
            found = attributes_of(resource)
            assert (found["service.name"], found["site"]) == ("ingestd", "A")
        assert {one["authorization"] for one in collector.headers} == {"Bearer collector-token"}
        assert not any(secret in body for body in collector.bodies for secret in (b"test-key", b"collector-token"))


def test_a_collector_that_refuses_costs_only_its_items_which_are_counted(tmp_path: Path) -> None:
    with DocumentServer() as server, OtlpCollector(status=400) as collector:
        server.workspace("Bench")
        config = scene(tmp_path, server.url, "a.csv")
        with listening_daemon(tmp_path, config, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **FAST_EXPORT) as (
            daemon,
            client,
        ):
            for signal in ("traces", "logs"):
                assert "OTEL_EXPORTER_OTLP_" in daemon.wait_for("telemetry_failed", signal=signal)["sentence"]
            daemon.wait_for("partition_acknowledged")
            assert min(dropped(client).values()) >= 1
            collector.status = 200
            (tmp_path / "drop" / "b.csv").write_text("part,mass\n3,0.30\n")
            for signal in ("traces", "logs"):
                daemon.wait_for("telemetry_resumed", signal=signal)
            collector.wait_for(
                lambda it: any(attributes_of(one).get("ingestd.partition") == "b.csv" for one in it.spans)
            )
            failures = [one for one in daemon.events if one["event"] == "telemetry_failed"]
            assert len(failures) == 2, "one line for each signal, however many batches were refused"
            assert daemon.stop() == 0


def test_a_collector_that_is_away_delays_the_end_by_a_second_at_most(tmp_path: Path) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        config = scene(tmp_path, server.url, "a.csv")
        with OtlpCollector() as gone:
            address = gone.url
        with listening_daemon(tmp_path, config, OTEL_EXPORTER_OTLP_ENDPOINT=address, **FAST_EXPORT) as (daemon, _):
            daemon.wait_for("partition_acknowledged")
            assert daemon.stop(seconds=DEADLINE_SECONDS / 5) == 0, "its requests are retried for 10 s"


@pytest.mark.parametrize(
    ("before", "variables", "expected"),
    [
        ("", {}, "opentelemetry False, []"),
        (
            "",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
            "opentelemetry False, []",
        ),
        (
            "sys.modules['opentelemetry'] = None",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
            "ingestd[otel]",
        ),
    ],
    ids=["without an endpoint", "disabled", "without the extra"],
)
def test_nothing_is_imported_or_exported_unless_it_is_requested_and_installed(
    tmp_path: Path, before: str, variables: dict[str, str], expected: str
) -> None:
    code = (
        f"import sys\n{before}\nimport ingestd.cli.run\nfrom ingestd.telemetry.export import exported_telemetry\n"
        "seen = []\nwith exported_telemetry(seen.append) as emit:\n    pass\n"
        "print('opentelemetry', bool(sys.modules.get('opentelemetry')), end=', ')\nprint(seen)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path, **variables),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    assert expected in run.stdout
