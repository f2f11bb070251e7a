"""The daemon's page over plain HTTP: who may act, forged forms, and live streams."""

from __future__ import annotations

import contextlib
import re
import select
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ingestd.daemon.web.live import MAX_CLIENTS
from tests.support.daemon_process import Daemon
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import TOKEN, connect, listening_daemon, pipeline, write_listening_configuration


@pytest.fixture(scope="module")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, httpx.Client]]:
    """A daemon with a token and a rejected record; the client has the token."""
    folder = tmp_path_factory.mktemp("acting")
    (folder / "drop").mkdir()
    (folder / "drop" / "a.csv").write_text("part,mass\n1,0.10\n,0.30\n")
    with DocumentServer() as server:
        server.workspace("Bench")
        listen = {"address": "127.0.0.1:0", "token": TOKEN}
        config = write_listening_configuration(folder, server.url, [pipeline("masses", {"path": "drop"})], listen)
        with listening_daemon(folder, config) as (daemon, client):
            client.auth = ("anna", TOKEN)
            daemon.wait_for("partition_settled")
            yield daemon, client


def form_token(client: httpx.Client) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', client.get("/rejected").text)
    assert found is not None
    return found[1]


def origin(client: httpx.Client) -> str:
    return str(client.base_url).rstrip("/")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "OWN", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str], acting: tuple[Daemon, httpx.Client]) -> None:
    _, client = acting
    sent = {name: origin(client) if value == "OWN" else value for name, value in headers.items()}
    response = client.post("/rejected/retry", data={"all": "1", "form_token": form_token(client)}, headers=sent)
    assert (response.status_code, response.text) == (
        403,
        "The form was not sent by a page of this listener. Open the page again.\n",
    )


@pytest.mark.parametrize("token", ["", "guessed", "\N{SNOWMAN}"])
def test_a_form_without_the_token_of_this_process_is_refused(token: str, acting: tuple[Daemon, httpx.Client]) -> None:
    daemon, client = acting
    before = len([one for one in daemon.events if one.get("event") == "rejections_retried"])
    for data in ({"all": "1"}, {"all": "1", "form_token": token}):
        response = client.post("/rejected/retry", data=data, headers={"Origin": origin(client)})
        assert response.status_code == 403
        assert "This form is from another page" in response.text
    assert len([one for one in daemon.events if one.get("event") == "rejections_retried"]) == before


def test_an_action_is_not_a_link(acting: tuple[Daemon, httpx.Client]) -> None:
    _, client = acting
    for path in ("/rejected/retry?all=1", "/held/1/approve", "/held/1/discard"):
        response = client.get(path)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_a_form_of_the_page_retries_and_names_the_page_in_the_log(acting: tuple[Daemon, httpx.Client]) -> None:
    daemon, client = acting
    data = {"all": "1", "pipeline": "masses", "form_token": form_token(client)}
    response = client.post("/rejected/retry", data=data, headers={"Origin": origin(client)})
    assert response.status_code == 303
    assert daemon.wait_for("rejections_retried")["chosen"] == "pipeline masses"
    assert "0 entries are pending again; 1 records" in client.get(response.headers["location"]).text


def test_a_decision_about_a_run_that_is_not_held_is_a_sentence(acting: tuple[Daemon, httpx.Client]) -> None:
    _, client = acting
    data = {"form_token": form_token(client)}
    response = client.post("/held/99/approve", data=data, headers={"Origin": origin(client)}, follow_redirects=True)
    assert response.status_code == 200
    assert "99" in response.text


@pytest.mark.parametrize(
    "path", ["/rejected?after=x", "/rejected?" + "a=1&" * 101, "/trace?key=%00", "/files?name=%00", "/trace?key=%FF"]
)
def test_a_field_that_cannot_be_used_is_an_error_of_the_client(path: str, acting: tuple[Daemon, httpx.Client]) -> None:
    assert acting[1].get(path).status_code == 400


def test_every_page_has_the_headers_that_confine_it(acting: tuple[Daemon, httpx.Client]) -> None:
    _, client = acting
    for path in ("/", "/rejected", "/held", "/nothing", "/pipelines/none"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    asset = re.search(r'"(/assets/ui\.[0-9a-f]{16}\.css)"', client.get("/").text)
    assert asset is not None
    assert client.get(asset[1]).headers["cache-control"] == "public, max-age=31536000, immutable"


def test_without_a_token_the_page_at_an_address_is_read_only(tmp_path: Path) -> None:
    config = write_listening_configuration(tmp_path, "http://127.0.0.1:9", [pipeline("masses", {"path": "."})])
    with listening_daemon(tmp_path, config) as (_, client):
        assert client.get("/").status_code == 200
        response = client.post("/rejected/retry", data={"all": "1"}, headers={"Origin": origin(client)})
        assert response.status_code == 403
        assert "Actions need a token or a Unix socket" in response.text


def test_live_streams_are_few_and_end_with_their_clients(acting: tuple[Daemon, httpx.Client]) -> None:
    daemon, client = acting
    kept: list[Iterator[str]] = []
    with contextlib.ExitStack() as streams:
        for _ in range(MAX_CLIENTS):
            response = streams.enter_context(client.stream("GET", "/live"))
            lines = response.iter_lines()
            kept.append(lines)  # an iterator that is forgotten closes its connection
            assert any(line.startswith("data: ") and "masses" in line for line in lines)
        refused = client.get("/live")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
        assert client.get("/").status_code == 200
    for _ in range(1_000):
        with client.stream("GET", "/live") as again:
            if again.status_code == 200:
                break
    else:
        raise AssertionError("no stream ended")
    assert not [event for event in daemon.events if event.get("level") == "error"]


def test_a_client_that_resets_its_connection_causes_no_error(acting: tuple[Daemon, httpx.Client]) -> None:
    daemon, client = acting
    for _ in range(20):
        connection = connect(client)
        connection.sendall(
            f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        assert select.select([connection], [], [], 30)[0]  # closing with unread data resets the connection
        connection.close()
    assert client.get("/readyz").status_code == 200
    assert not [event for event in daemon.events if event.get("level") == "error"]
