"""The listener of a running daemon: its metrics, its health, and clients that mean harm."""

from __future__ import annotations

import json
import re
import resource
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from ingestd.core.clock import moment
from ingestd.core.pipeline_state import SEVERITY
from ingestd.web.metrics import METRICS
from ingestd.web.server import MAX_CONNECTIONS
from ingestd.wire.names import KEY_EXPIRES
from tests.support.daemon_process import Daemon, here, running_daemon
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import TOKEN, connect, listening_daemon, pipeline, write_listening_configuration

DAY = 86_400
KEY_ENDS = datetime.now(UTC) + timedelta(days=9)
MONITORING = Path(__file__).parents[2] / "config" / "monitoring"


def wait_for_scrape(client: httpx.Client, name: str, labels: dict[str, str], value: float) -> dict[str, list[object]]:
    """Scrape until a metric has a value, at most for as long as the client waits."""
    found: dict[str, list[object]] = {}
    for _ in range(600):
        found = scrape(client)
        if any(one.labels == labels and one.value == value for one in found.get(name, [])):  # type: ignore[attr-defined]
            return found
    raise AssertionError(f"no {name} {labels} {value} in {found.get(name)}")


def wait_for_reasons(client: httpx.Client, count: int) -> httpx.Response:
    """Request the readiness until it has this number of reasons, and return the last response."""
    response = client.get("/readyz")
    for _ in range(600):
        if len(response.json()["reasons"]) >= count:
            break
        response = client.get("/readyz")
    return response


def scrape(client: httpx.Client) -> dict[str, list[object]]:
    response = client.get("/metrics")
    assert response.status_code == 200, response.text
    samples: dict[str, list[object]] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample)
    return samples


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, httpx.Client]]:
    """A daemon that has delivered entries, rejected a record, and has a file that waits."""
    folder = tmp_path_factory.mktemp("listener")
    drop = folder / "drop"
    drop.mkdir()
    (drop / "a.csv").write_text("part,mass\n1,0.10\n2,0.20\n,0.30\n")
    (drop / "b.csv").write_text("")
    with DocumentServer() as server:
        server.workspace("Bench")
        server.headers[KEY_EXPIRES] = KEY_ENDS.isoformat()
        config = write_listening_configuration(
            folder, server.url, [pipeline("masses", {"path": "drop", "empty_seconds": 3_600})]
        )
        with listening_daemon(folder, config) as (daemon, client):
            daemon.wait_for("partition_acknowledged")
            yield daemon, client


def test_a_scrape_shows_what_the_daemon_did(working: tuple[Daemon, httpx.Client]) -> None:
    _, client = working
    sink = {"sink": "Sink masses in Bench"}
    found = wait_for_scrape(client, "ingestd_entries_delivered_total", sink, 2)
    values = {
        (sample.name, *sample.labels.values()): sample.value  # type: ignore[attr-defined]
        for samples in found.values()
        for sample in samples
    }
    assert values["ingestd_pending_entries", "Sink masses in Bench"] == 0
    assert values["ingestd_oldest_pending_age_seconds", "Sink masses in Bench"] == 0
    assert values["ingestd_lane_state", "Sink masses in Bench", "idle"] == 1
    assert values["ingestd_rejected", "masses"] == 1
    states = {key[2]: value for key, value in values.items() if key[:2] == ("ingestd_pipeline_state", "masses")}
    assert states == dict.fromkeys(SEVERITY, 0) | {"attention": 1}
    assert values["ingestd_drift_keys", "Sink masses in Bench"] == 0
    assert values["ingestd_source_mounted", "masses"] == 1
    assert values["ingestd_runs_total", "masses", "failed"] == 0, "an increase to 1 is noticed"
    assert 8 * DAY < values["ingestd_key_expires_seconds",] < 9 * DAY
    assert values["ingestd_records_rejected_total", "masses"] == 1
    assert values["ingestd_records_read_total", "masses"] == 3
    assert values["ingestd_entries_read_total", "created", "masses"] == 2
    assert values["ingestd_runs_total", "masses", "changed"] == 1
    assert values["ingestd_run_duration_seconds_count", "masses"] == 1
    assert values["ingestd_files_waiting", "masses", "empty"] == 1
    assert values["ingestd_source_available", "masses"] == 1
    assert 0 <= values["ingestd_source_lag_seconds", "masses"] < 60
    assert values["ingestd_state_size_bytes",] > 0
    assert values["ingestd_request_duration_seconds_count",] == sum(
        value for name, value in values.items() if name[0] == "ingestd_requests_total"
    )
    assert values["ingestd_process_resident_memory_bytes",] > 0


def test_a_key_that_ends_within_14_days_is_a_notice_about_the_daemon(working: tuple[Daemon, httpx.Client]) -> None:
    ends = moment(KEY_ENDS.timestamp())
    wait_for_scrape(working[1], "ingestd_entries_delivered_total", {"sink": "Sink masses in Bench"}, 2)
    assert f"The API key of the service expires {ends}. Create a new key" in working[1].get("/").text


OF_CONNECTIONS = {"ingestd_source_connected", "ingestd_source_behind_seconds", "ingestd_source_dropped_total"}
"""A folder has no connection; tests/process/test_push.py scrapes a source with one."""


OF_STANDBYS = {name for name, described in METRICS.items() if described.help.startswith("With --standby")}
"""A daemon without a standby has none."""


def test_every_described_metric_is_in_a_scrape_and_every_scraped_one_is_described(
    working: tuple[Daemon, httpx.Client],
) -> None:
    scraped = {re.sub(r"_(bucket|sum|count)$", "", name) for name in scrape(working[1]) if "_process_" not in name}
    assert {name for name in scraped if not name.endswith("_created")} == set(METRICS) - OF_CONNECTIONS - OF_STANDBYS


def test_every_label_of_a_scrape_is_described(working: tuple[Daemon, httpx.Client]) -> None:
    for name, samples in scrape(working[1]).items():
        if (described := METRICS.get(re.sub(r"_(bucket|sum|count)$", "", name))) is None:
            continue
        for sample in samples:
            assert set(sample.labels) - {"le"} == set(described.labels), name  # type: ignore[attr-defined]


def expressions() -> list[str]:
    rules = YAML(typ="safe", pure=True).load((MONITORING / "ingestd.rules.yaml").read_text())
    board = json.loads((MONITORING / "ingestd-dashboard.json").read_text())
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [*alerts, *queries]


@pytest.mark.parametrize("expression", expressions())
def test_every_metric_and_label_of_the_dashboard_and_the_alerts_is_in_a_scrape(
    expression: str, working: tuple[Daemon, httpx.Client]
) -> None:
    found = scrape(working[1])
    names = re.findall(r"\bingestd_\w+", re.sub(r'"[^"]*"', "", expression))
    assert names or expression.startswith("up{")
    if OF_STANDBYS.issuperset(names):
        return
    for name in names:
        assert name in found
    grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")}
    matched = {label for part in re.findall(r"\{([^}]*)\}", expression) for label in re.findall(r"(\w+)\s*=", part)}
    known = {label for name in names for sample in found[name] for label in sample.labels}  # type: ignore[attr-defined]
    assert grouped | matched <= known | {"instance", "job"}
    assert expression.count("(") == expression.count(")")


def test_a_daemon_that_works_is_alive_and_ready(working: tuple[Daemon, httpx.Client]) -> None:
    _, client = working
    assert (client.get("/healthz").status_code, client.get("/healthz").json()) == (200, {"alive": True})
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (
        200,
        {"ready": True, "reasons": [], "pipelines": {"masses": "attention"}},
    )
    assert client.head("/readyz").content == b""


def test_a_daemon_without_its_service_and_its_source_is_not_ready_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.csv").write_text("part,mass\n1,0.10\n")
    config = write_listening_configuration(
        tmp_path,
        "http://127.0.0.1:9",
        [pipeline("masses", {"path": "drop"}), pipeline("away", {"path": "missing", "canary": ".mounted"})],
    )
    with listening_daemon(tmp_path, config) as (daemon, client):
        daemon.wait_for("delivery_delayed")
        daemon.wait_for("source_away")
        found = wait_for_scrape(client, "ingestd_source_available", {"pipeline": "away"}, 0)
        assert [sample.value for sample in found["ingestd_oldest_pending_age_seconds"]] != [0]  # type: ignore[attr-defined]
        # The lane reports the reason after it is stored, a moment after the event.
        response = wait_for_reasons(client, 2)
        reasons = response.json()["reasons"]
        assert (response.status_code, response.json()["ready"], len(reasons)) == (503, False, 2)
        assert reasons[0].startswith("masses is unavailable: ")
        assert reasons[1].startswith("away is unavailable: ")
        assert response.json()["pipelines"] == {"masses": "unavailable", "away": "unavailable"}
        assert client.get("/healthz").status_code == 200


def test_a_page_of_another_site_cannot_read_the_listener_by_a_name_of_its_own(
    working: tuple[Daemon, httpx.Client],
) -> None:
    _, client = working
    response = client.get("/metrics", headers={"Host": "evil.example"})
    assert (response.status_code, "listen.hosts" in response.text) == (421, True)
    assert client.get("/metrics", headers={"Host": "localhost:1"}).status_code == 200


def test_a_listener_with_a_token_responds_only_to_requests_that_have_it(tmp_path: Path) -> None:
    listen = {"address": "0.0.0.0:0", "token": TOKEN, "hosts": ["bench-3.example"]}
    config = write_listening_configuration(tmp_path, "http://127.0.0.1:9", [pipeline("masses", {"path": "."})], listen)
    with listening_daemon(tmp_path, config) as (daemon, client):
        client.base_url = httpx.URL(f"http://127.0.0.1:{client.base_url.port}")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic !"}):
            refused = client.get("/metrics", headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Basic ")
        named = {"Authorization": f"Bearer {TOKEN}", "Host": "bench-3.example"}
        assert client.get("/metrics", headers=named).status_code == 200
        assert client.get("/metrics", auth=("prometheus", TOKEN)).status_code == 200
        assert client.get("/healthz").status_code == 401
        daemon.stop()
        assert TOKEN not in "\n".join(daemon.lines)


def test_an_address_that_other_machines_reach_is_refused_without_a_token(tmp_path: Path) -> None:
    for address in ("0.0.0.0:8402", "[::]:8402", "192.0.2.7:8402"):
        config = write_listening_configuration(
            tmp_path, "http://127.0.0.1:9", [pipeline("masses", {"path": "."})], {"address": address}
        )
        run = here(tmp_path, "run", "-c", str(config))
        assert run.returncode == 78
        assert "Set 'token' from a secret" in run.stderr


def test_only_the_account_of_the_daemon_can_connect_to_its_unix_socket(tmp_path: Path) -> None:
    config = write_listening_configuration(
        tmp_path, "http://127.0.0.1:9", [pipeline("masses", {"path": "."})], {"socket": "ingestd.http"}
    )
    with listening_daemon(tmp_path, config) as (daemon, client):
        assert client.get("/healthz").status_code == 200
        assert stat.S_IMODE((tmp_path / "ingestd.http").stat().st_mode) == 0o600
        assert daemon.stop() == 0
    assert not (tmp_path / "ingestd.http").exists()


def test_a_port_in_use_is_reported_and_does_not_stop_the_daemon(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = {"address": f"127.0.0.1:{taken.getsockname()[1]}"}
        config = write_listening_configuration(
            tmp_path, "http://127.0.0.1:9", [pipeline("masses", {"path": "."})], listen
        )
        with running_daemon(tmp_path, "run", "-c", str(config)) as (daemon, manager):
            assert daemon.wait_for("listener_unavailable")["reason"] == "Address already in use"
            manager.wait_for("READY")  # commands find it from then on
            sentence = (
                f"Metrics and pages are not available: {listen['address']} can't be opened: Address already in use."
            )
            assert sentence in here(tmp_path, "status", "-c", str(config)).stdout
            taken.close()
            daemon.wait_for("listener_opened")
            assert "not available" not in here(tmp_path, "status", "-c", str(config)).stdout
            assert daemon.stop() == 0


# ------------------------------------------------------------------------------------------------ hostile clients


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000, b"431"),
        (b"DELETE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"405"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000, b"413"),
        (b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", b"403"),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
    ],
)
def test_a_request_that_is_too_large_or_malformed_gets_a_status(
    sent: bytes, status: bytes, working: tuple[Daemon, httpx.Client]
) -> None:
    received = b""
    with connect(working[1]) as connection, suppress(ConnectionResetError):  # of a body that is not read
        connection.sendall(sent)
        while data := connection.recv(65_536):
            received += data
    assert received.startswith(b"HTTP/1.1 " + status)
    assert received.count(b"HTTP/1.1") == 1


def test_a_thousand_slow_clients_do_not_keep_a_scrape_out(working: tuple[Daemon, httpx.Client]) -> None:
    daemon, client = working
    resource.setrlimit(resource.RLIMIT_NOFILE, (4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    slow = []
    try:
        for _ in range(1_000):
            connection = connect(client)
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: local")
            slow.append(connection)
        assert client.get("/metrics").status_code == 200
        descriptors = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
        assert descriptors < MAX_CONNECTIONS + 100
    finally:
        for connection in slow:
            connection.close()
    assert client.get("/readyz").json()["ready"]


CAUSES = {
    "rejections": "ingestd_rejected",
    "failed runs": 'ingestd_runs_total{result="failed"}',
    "held runs": "ingestd_held_runs",
    "drift": "ingestd_drift_keys",
    "keys that expire within 14 days": "ingestd_key_expires_seconds) < 14 * 86400",
    "an unavailable source": "ingestd_source_available",
    "an empty mount point": "ingestd_source_mounted",
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_has_an_alert(cause: str) -> None:
    assert any(CAUSES[cause] in expression for expression in expressions())
