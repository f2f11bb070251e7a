"""Live entries: the event stream of a sink's page, with real processes."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.workspaced_process import DEADLINE_SECONDS, WorkspaceService, new_key


class Stream:
    """Reads events of one connection."""

    def __init__(self, response: httpx.Response) -> None:
        assert response.status_code == 200, response.status_code
        assert response.headers["Content-Type"].startswith("text/event-stream")
        self._lines = response.iter_lines()

    def next(self) -> tuple[str, str, Any]:
        """Return kind, id and data of the next event; comments and the retry interval are skipped."""
        fields: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if not line and "event" in fields:
                return fields["event"], fields.get("id", ""), json.loads(fields["data"])
            if name:
                fields[name] = value
        raise EOFError

    @property
    def ended(self) -> bool:
        """Return whether the service ends the stream without another event."""
        return not [line for line in self._lines if line.startswith("event")]


@contextmanager
def signed_in(service: WorkspaceService, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=DEADLINE_SECONDS) as browser:
        assert browser.post("/ui/sign-in", data={"key": key}).status_code == 303
        yield browser


@contextmanager
def following(browser: httpx.Client, sink: str, since: str = "", **headers: str) -> Iterator[Stream]:
    page = sink.replace("/v1/workspace/", "/ui/workspaces/").replace("/data-sink/", "/sinks/")
    query = {"since": since} if since else {}
    with browser.stream("GET", f"{page}/live", params=query, headers=headers) as response:
        yield Stream(response)


def make_sink(http: httpx.Client) -> str:
    workspace = http.post("/v1/workspace", json={"label": "w"}).json()["id"]
    return str(http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "s"}).headers["Location"])


def push(http: httpx.Client, sink: str, key: str) -> None:
    assert http.post(f"{sink}/mass", json={"key": key, "value": "1"}).status_code == 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service that these tests share, and its owner."""

    data: Path
    key: str
    service: WorkspaceService
    http: httpx.Client


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data = tmp_path_factory.mktemp("live") / "data"
    key = new_key(data)
    with WorkspaceService(data, "--dev") as service, service.client(key) as http:
        yield Running(data=data, key=key, service=service, http=http)


@pytest.fixture
def browser(running: Running) -> Iterator[httpx.Client]:
    with signed_in(running.service, running.key) as client:
        yield client


def test_only_entries_that_the_page_lacks_are_sent(running: Running, browser: httpx.Client) -> None:
    sink = make_sink(running.http)
    with following(browser, sink) as stream:
        kind, version, news = stream.next()
        assert (kind, "None" in news["pager"], news["rows"]) == ("entries", True, "")
    push(running.http, sink, "a<b>")
    with following(browser, sink, since=version) as stream:
        kind, newer, news = stream.next()
        assert kind == "entries"
        assert "a&lt;b&gt;" in news["rows"]
    with following(browser, sink, since=version, **{"Last-Event-ID": newer}) as stream:
        push(running.http, sink, "c")  # an entry of the last event is not sent again, so this is the next one
        assert 'data-key="c"' in stream.next()[2]["rows"]


def test_a_commit_of_another_process_arrives(running: Running, browser: httpx.Client) -> None:
    with WorkspaceService(running.data) as other, other.client(running.key) as http:
        sink = make_sink(http)
        with following(browser, sink) as stream:
            stream.next()
            push(http, sink, "far")
            assert 'data-key="far"' in stream.next()[2]["rows"]


def test_signing_out_in_another_tab_ends_the_stream(running: Running, browser: httpx.Client) -> None:
    sink = make_sink(running.http)
    page = browser.get("/ui/workspaces").text
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    with following(browser, sink) as stream:
        stream.next()
        assert browser.post("/ui/sign-out", data={"form_token": token}).status_code == 303
        kind, _, reported = stream.next()
        assert (kind, "signed out" in reported["sentence"]) == ("ended", True)
        assert stream.ended


def test_deleting_a_sink_ends_the_stream_with_a_message(running: Running, browser: httpx.Client) -> None:
    sink = make_sink(running.http)
    with following(browser, sink) as stream:
        stream.next()
        assert running.http.delete(sink).status_code == 200
        kind, _, reported = stream.next()
        assert (kind, reported["sentence"]) == ("ended", "There is no such data sink in this workspace.")


def test_open_streams_are_limited_a_closed_one_can_be_replaced_and_none_delays_the_end(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    environment = {"WORKSPACED_LIVE_STREAMS": "1"}
    with (
        WorkspaceService(data, environment=environment) as service,
        service.client(key) as http,
        signed_in(service, key) as browser,
    ):
        sink = make_sink(http)
        page = sink.replace("/v1/workspace/", "/ui/workspaces/").replace("/data-sink/", "/sinks/")
        with following(browser, sink) as stream:
            stream.next()
            refused = browser.get(f"{page}/live")
            assert refused.status_code == 503
            assert "Reload this page by hand" in refused.text
            assert http.delete(sink).status_code == 200
            assert stream.next()[0] == "ended"
            assert stream.ended
        other = make_sink(http)
        with following(browser, other) as stream:
            assert stream.next()[0] == "entries"
            service.process.send_signal(signal.SIGTERM)
            assert stream.ended
        assert service.process.wait(10) == 0


def test_the_streams_of_one_key_do_not_exclude_other_users(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = new_key(data)
    environment = {
        "WORKSPACED_LIVE_STREAMS": "4",
        "WORKSPACED_LIVE_STREAMS_PER_KEY": "2",
        "WORKSPACED_LIVE_STREAMS_PER_ADDRESS": "3",
    }
    with (
        WorkspaceService(data, environment=environment) as service,
        service.client(key) as http,
        signed_in(service, key) as browser,
        signed_in(service, new_key(data, name="svc:other")) as other,
        ExitStack() as stack,
    ):
        sink = make_sink(http)
        page = sink.replace("/v1/workspace/", "/ui/workspaces/").replace("/data-sink/", "/sinks/")
        streams = [stack.enter_context(following(browser, sink)) for _ in range(2)]
        refused = browser.get(f"{page}/live")
        assert (refused.status_code, "2 pages with your key" in refused.text) == (429, True)
        streams.append(stack.enter_context(following(other, sink)))
        refused = other.get(f"{page}/live")
        assert (refused.status_code, "3 pages from your address" in refused.text) == (429, True)
        with httpx.Client(
            base_url=service.url, timeout=DEADLINE_SECONDS, transport=httpx.HTTPTransport(local_address="127.0.0.2")
        ) as elsewhere:
            elsewhere.cookies = other.cookies
            streams.append(stack.enter_context(following(elsewhere, sink)))
            assert [stream.next()[0] for stream in streams] == ["entries"] * 4


def test_without_a_session_there_is_no_stream_and_the_log_contains_neither_key_nor_cookie(
    running: Running, browser: httpx.Client
) -> None:
    sink = make_sink(running.http)
    page = sink.replace("/v1/workspace/", "/ui/workspaces/").replace("/data-sink/", "/sinks/")
    assert httpx.get(f"{running.service.url}{page}/live").status_code == 401
    assert browser.get(page).status_code == 200
    assert '"/ui/sign-in"' in running.service.log
    assert running.key not in running.service.log
    assert str(browser.cookies["workspaced_session"]) not in running.service.log
