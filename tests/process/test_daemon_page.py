"""The daemon's page over plain HTTP: who may act, forged forms, and live streams."""

from __future__ import annotations

import contextlib
import json
import re
import select
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ingestd.web.export_streams import MAX_EXPORTS
from ingestd.web.live import MAX_CLIENTS
from tests.support.daemon_process import Daemon
from tests.support.document_server import DocumentServer
from tests.support.listening_daemon import TOKEN, connect, listening_daemon, pipeline, write_listening_configuration

OTHER = {"x-api-key": "test-key", "ClientId": "other"}


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
            daemon.wait_for("partition_acknowledged")
            yield daemon, client


def form_token(client: httpx.Client, path: str = "/rejected") -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', client.get(path).text)
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
    for path in ("/rejected/retry", "/held/1/approve", "/runs/1/rollback"):
        for data in ({"all": "1"}, {"all": "1", "form_token": token}):
            response = client.post(path, data=data, headers={"Origin": origin(client)})
            assert response.status_code == 403
            assert "This form is from another page" in response.text
    assert len([one for one in daemon.events if one.get("event") == "rejections_retried"]) == before


def test_an_action_is_not_a_link(acting: tuple[Daemon, httpx.Client]) -> None:
    _, client = acting
    for path in ("/rejected/retry?all=1", "/held/1/approve", "/held/1/discard", "/pipelines/masses/pause"):
        response = client.get(path)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_a_form_of_the_page_retries_and_names_the_page_in_the_log(acting: tuple[Daemon, httpx.Client]) -> None:
    daemon, client = acting
    data = {"all": "1", "pipeline": "masses", "form_token": form_token(client)}
    response = client.post("/rejected/retry", data=data, headers={"Origin": origin(client)})
    assert response.status_code == 303
    assert daemon.wait_for("rejections_retried")["chosen"] == "pipeline masses"
    notice = "Pending again: 0 entries. Mapped again when their source is read: 1 record."
    assert notice in client.get(response.headers["location"]).text


def test_the_buttons_of_a_pipeline_pause_resume_and_read_it(acting: tuple[Daemon, httpx.Client]) -> None:
    daemon, client = acting
    page = "/pipelines/masses"

    def press(verb: str) -> str:
        assert f'action="{page}/{verb}"' in client.get(page).text
        data = {"form_token": form_token(client, page)}
        return client.post(f"{page}/{verb}", data=data, headers={"Origin": origin(client)}, follow_redirects=True).text

    assert "The daemon reads pipeline masses now." in press("run")
    assert daemon.wait_for("pipeline_requested")["by"] == "web page"
    paused = press("pause")
    assert daemon.wait_for("pipeline_paused")["by"] == "web page"
    for text in ("Pipeline masses is paused: ", "It is paused since "):
        assert text in paused
    assert f'action="{page}/run"' not in paused
    assert "It is paused since " in client.get("/").text
    assert "Pipeline masses is resumed" in press("resume")
    assert daemon.wait_for("pipeline_resumed")["by"] == "web page"


def test_a_decision_about_a_run_that_is_not_held_is_a_sentence(acting: tuple[Daemon, httpx.Client]) -> None:
    _, client = acting
    data = {"form_token": form_token(client)}
    response = client.post("/held/99/approve", data=data, headers={"Origin": origin(client)}, follow_redirects=True)
    assert response.status_code == 200
    assert "99" in response.text


@pytest.mark.parametrize(
    "path",
    [
        "/rejected?after=x",
        "/drift?after=9999999999999999999999",
        "/rejected?" + "a=1&" * 101,
        "/trace?key=%00",
        "/files?name=%00",
        "/trace?key=%FF",
    ],
)
def test_a_field_that_cannot_be_used_is_an_error_of_the_client(path: str, acting: tuple[Daemon, httpx.Client]) -> None:
    assert acting[1].get(path).status_code == 400


def test_every_page_has_the_headers_that_confine_it(acting: tuple[Daemon, httpx.Client]) -> None:
    _, client = acting
    for path in ("/", "/rejected", "/held", "/drift", "/configuration", "/nothing", "/pipelines/none"):
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
        shown = client.get("/configuration").text
        assert "It is the configuration that runs." in shown
        assert "service.url" not in shown
        assert "Reload" not in shown
        assert "Check now" not in client.get("/drift").text


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


def test_clients_that_do_not_read_an_export_delay_no_page_and_get_no_more_than_their_number(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    unusable = "".join(f",{number} {'x' * 1_000}\n" for number in range(20_000))  # more than a connection buffers
    (tmp_path / "drop" / "a.csv").write_text(f"part,mass\n{unusable}")
    with DocumentServer() as server, contextlib.ExitStack() as connections:
        server.workspace("Bench")
        config = write_listening_configuration(tmp_path, server.url, [pipeline("masses", {"path": "drop"})])
        daemon, client = connections.enter_context(listening_daemon(tmp_path, config))
        daemon.wait_for("records_rejected")
        kept: list[Iterator[bytes]] = []
        with contextlib.ExitStack() as streams:
            for _ in range(MAX_EXPORTS):
                pieces = streams.enter_context(client.stream("GET", "/rejected.csv")).iter_raw(16)
                kept.append(pieces)  # an iterator that is forgotten closes its connection
                assert next(pieces) == b"part,mass,_reaso"
            refused = client.get("/rejected.csv")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "60")
            assert "masses" in client.get("/").text
            assert "Export as CSV" in client.get("/rejected").text
        for _ in range(1_000):
            again = client.get("/rejected.csv")
            if again.status_code == 200:
                break
        else:
            raise AssertionError("no export ended")
        assert again.text.count("\r\n") == 20_001
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


def test_the_configuration_page_has_the_place_of_each_mistake_and_reloads(
    tmp_path: Path, server: DocumentServer
) -> None:
    (tmp_path / "drop").mkdir()
    listen = {"address": "127.0.0.1:0", "token": TOKEN}
    config = write_listening_configuration(tmp_path, server.url, [pipeline("masses", {"path": "drop"})], listen)
    with listening_daemon(tmp_path, config) as (daemon, client):
        client.auth = ("anna", TOKEN)
        shown = client.get("/configuration").text
        assert "It is the configuration that runs." in shown
        assert "has no mistake: 1 pipeline." in shown
        assert "masses.{part}" in shown
        assert TOKEN not in shown
        assert "test-key" not in shown

        def reload() -> str:
            sent = {"form_token": form_token(client, "/configuration")}
            headers = {"Origin": origin(client)}
            return client.post("/configuration/reload", data=sent, headers=headers, follow_redirects=True).text

        good = config.read_text()
        config.write_text(good.replace('"pattern"', '\n"patern"'))
        shown = client.get("/configuration").text
        assert "1 mistake. A reload would change nothing." in shown
        place = re.search(r"line (\d+), column (\d+)", shown)
        assert place is not None
        assert place[1] == "2"
        assert "pipelines[0].source.patern" in shown or "pipelines.0.source.patern" in shown
        assert "Nothing was changed, because the file has mistakes." in reload()
        config.write_text(
            good.replace('"pipelines": [', '"pipelines": [' + json.dumps(pipeline("second", {"path": "drop"})) + ", ")
        )
        assert "<dt>Add</dt><dd>second</dd>" in client.get("/configuration").text
        assert "Reloaded. Pipelines: 1 added, 1 unchanged." in reload()
        assert daemon.wait_for("configuration_reloaded")["by"] == "web page"
        assert "It is the configuration that runs." in client.get("/configuration").text
        config.unlink()
        assert "the whole file" in client.get("/configuration").text


def test_a_change_by_others_is_shown_as_drift_and_repaired(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.csv").write_text("part,mass\n1,0.10\n2,0.20\n")
    with DocumentServer() as server:
        workspace = server.workspace("Bench")
        listen = {"address": "127.0.0.1:0", "token": TOKEN}
        config = write_listening_configuration(tmp_path, server.url, [pipeline("masses", {"path": "drop"})], listen)
        with listening_daemon(tmp_path, config) as (daemon, client):
            client.auth = ("anna", TOKEN)
            daemon.wait_for("partition_acknowledged")
            assert "No data sink was checked yet." in client.get("/drift").text
            with httpx.Client(base_url=f"{server.url}/v1/workspace/{workspace}", headers=OTHER) as other:
                (sink,) = other.get("/data-sink/list").json()
                changed = other.patch(f"/data-sink/{sink['id']}/masses.1", json={"value": "9.99"})
                assert changed.status_code == 200, changed.text

            def check(**fields: str) -> str:
                data = {"form_token": form_token(client, "/drift"), **fields}
                headers = {"Origin": origin(client)}
                return client.post("/drift/check", data=data, headers=headers, follow_redirects=True).text

            shown = check(pipeline="masses")
            assert "Data sinks compared: 1 of 1." in shown
            assert "0 added, 1 changed, 0 removed" in shown
            assert "9.99" in shown
            assert '<a href="/trace?key=masses.1">masses.1</a>' in shown
            assert "Entries sent again: 1." in check(mode="repair")
            assert "0.10" in client.get("/drift").text
            assert check(pipeline="none").count("There is no pipeline none.") == 1
            assert client.get("/drift?after=x").status_code == 400


def test_the_notices_of_several_files_are_on_the_page_of_their_pipeline(tmp_path: Path, server: DocumentServer) -> None:
    (tmp_path / "drop").mkdir()
    for name in ("a", "b"):
        (tmp_path / "drop" / f"{name}.csv").write_text(f"part,mass\n{name},1\n{name},2\n")
    config = write_listening_configuration(tmp_path, server.url, [pipeline("masses", {"path": "drop"})])
    with listening_daemon(tmp_path, config) as (daemon, client):
        for name in ("a", "b"):
            read = daemon.wait_for("partition_read", partition=f"{name}.csv")
            assert "has different values" in read["notice"]
        assert '<a href="/pipelines/masses">1 more</a>' in client.get("/").text
        assert client.get("/pipelines/masses").text.count(" has different values: ") == 2


def test_the_front_page_has_the_command_and_the_action_of_what_needs_a_person(
    acting: tuple[Daemon, httpx.Client],
) -> None:
    _, client = acting
    shown = client.get("/").text
    needs = shown.partition('id="needs"')[2].partition("</ul>")[0]
    assert "<code>ingestd rejected list --pipeline masses</code>" in needs
    assert 'href="/rejected?pipeline=masses"' in needs
    assert 'href="/?state=attention" id="state-attention">attention 1</a>' in shown
    assert 'id="well"' not in shown
    assert 'id="pipeline-masses"' in client.get("/?state=attention").text
    none = client.get("/?state=ok").text
    assert "No pipeline is ok now." in none
    assert 'id="pipeline-masses"' not in none
    assert 'id="needs"' in none, "a filter hides no condition"
    with client.stream("GET", "/live?state=ok") as stream:
        event = json.loads(
            next(line for line in stream.iter_lines() if line.startswith("data: ")).removeprefix("data: ")
        )
    assert "No pipeline is ok now." in event
    assert 'id="needs"' in event
    assert client.get("/?state=nothing").status_code == 400
    assert client.get("/live?state=nothing").status_code == 400


def test_the_front_page_is_quiet_while_all_is_well(tmp_path: Path, server: DocumentServer) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.csv").write_text("part,mass\n1,0.10\n")
    scheduled = pipeline("masses", {"path": "drop"}, schedule={"every": "1h"})
    config = write_listening_configuration(tmp_path, server.url, [scheduled])
    with listening_daemon(tmp_path, config) as (daemon, client):
        daemon.wait_for("partition_acknowledged")
        shown = client.get("/").text
        assert "All is well: everything that the sources have is delivered." in shown
        assert 'id="needs"' not in shown
        assert re.search(r'data-label="Next run" class="when"><time datetime="[^"]+Z" title="[^"]+ UTC">', shown)
        assert re.search(r'aria-label="At most 1 in half an hour".*</svg> 1</span>', shown)


def test_broken_files_never_show_a_good_state(tmp_path: Path, server: DocumentServer) -> None:
    (tmp_path / "drop").mkdir()
    config = write_listening_configuration(tmp_path, server.url, [pipeline("masses", {"path": "drop"})])
    broken = {
        "a.csv": (b"part\n1\n", "partition_rejected"),
        "b.csv": (b"part,mass\n1,\xff\xfe\x00\n", "partition_read"),
        "c.csv": (b'part,mass\n"1,0.10\n', "partition_read"),
    }

    def states(client: httpx.Client) -> list[str]:
        shown = client.get("/").text
        assert 'id="well"' not in shown
        return re.findall(
            r'class="state (\w+)"', shown.partition('id="rows"')[2] + client.get("/pipelines/masses").text
        )

    for name, (content, _) in broken.items():
        (tmp_path / "drop" / name).write_bytes(content)
    with listening_daemon(tmp_path, config) as (daemon, client):
        seen = []
        for name, (_, event) in broken.items():
            daemon.wait_for(event, partition=name)
            seen.append(states(client))
        (tmp_path / "drop" / "good.csv").write_text("part,mass\n2,0.20\n")
        daemon.wait_for("partition_acknowledged", partition="good.csv")
        seen.append(states(client))
        assert {one[0] for one in seen} == {"attention"}
        assert "ok" not in {state for one in seen for state in one}


def test_the_page_of_a_file_has_its_life_until_the_archive(tmp_path: Path, server: DocumentServer) -> None:
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop" / "a.csv").write_text("part,mass\n1,0.10\n")
    source = {"path": "drop", "after": "archive", "archive": "done"}
    config = write_listening_configuration(tmp_path, server.url, [pipeline("masses", source)])
    with listening_daemon(tmp_path, config) as (daemon, client):
        daemon.wait_for("partition_acknowledged")
        shown = client.get("/files?name=a.csv").text
        steps = re.findall(r'<li class="(\w+)"><span class="name">(\w+)</span> <span class="when">(<time)?', shown)
        names = ("Changed", "Seen", "Read", "Mapped", "Delivered", "Archived")
        assert steps == [("done", name, "<time") for name in names]
        assert "it was archived as " in shown
        assert "<title>a.csv · ingestd</title>" in shown
