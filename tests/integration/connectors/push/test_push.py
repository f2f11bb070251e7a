"""The push source with a real state file, real connections and a reader in a thread."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self, cast

import httpx
import pytest
from pydantic import ValidationError

from connectors.formats.json import Json
from connectors.push import PushConnector, PushOptions
from connectors.push.endpoint import PushedMessage
from ingestd.core.address import SinkAddress
from ingestd.core.errors import MirrorFull
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.sdk import Partition, SourceBroken, SourceContext, SourceUnavailable
from ingestd.sdk.formats.decoder import decode
from tests.support.push_client import KEY, SECRET, TOKEN, bearer, free_address, signed

SECONDS = 30.0
BEARER = {"type": "bearer", "token": TOKEN}
HMAC = {"type": "hmac", "secret": SECRET}


class Bench:
    """A push source that is read in a thread whenever it wakes. ``full``: the state file can't be written."""

    def __init__(self, base: Path, **options: Any) -> None:
        self.address = free_address()
        settings = {"address": self.address, "path": "/bench", "auth": BEARER, **options}
        self.now = time.time()
        self.woken: list[str] = []
        context = SourceContext(
            pipeline="p", base=base, now=lambda: self.now, steady=time.monotonic, kept_folder=base / "kept",
            wake=self.woken.append,
        )  # fmt: skip
        self.connector = PushConnector(PushOptions.model_validate(settings), context)
        self.mirror = SqliteMirror.open(base / "state.db")
        self.full = threading.Event()
        self.held = threading.Event()
        self._reader = Reader(
            pipeline="p", connector=self.connector, mapping=Mapping([EntrySpec(key="{part}", value="{mass}")]),
            sink=SinkAddress(workspace="w", by="label", name="s"), mirror=cast("IntakeStore", _Fallible(self)),
            emit=lambda _: None,
        )  # fmt: skip
        self._due = threading.Condition()
        self._has_read = threading.Condition()
        self._readings = 0
        self._is_due = True
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="reading")
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.connector.watch(self.wake))
        self._thread.start()
        self.client = self._stack.enter_context(httpx.Client(base_url=f"http://{self.address}", timeout=SECONDS))
        with self._has_read:  # a source accepts requests from its first reading on
            assert self._has_read.wait_for(lambda: self._readings, SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        with self._due:
            self._ends = True
            self._due.notify()
        self._reader.stop()
        self._thread.join(SECONDS)
        self._stack.close()
        self.connector.close()
        self.mirror.close()

    def wake(self) -> None:
        with self._due:
            self._is_due = True
            self._due.notify()

    def wait_for_entries(self, *keys: str) -> None:
        """Wait until readings have stored entries."""
        with self._has_read:
            assert self._has_read.wait_for(lambda: set(keys) <= self.entries().keys(), SECONDS), self.entries()

    def _run(self) -> None:
        while True:
            with self._due:
                self._due.wait_for(lambda: self._is_due or self._ends)
                if self._ends:
                    return
                self._is_due = False
            try:
                self._reader.read_pass()
                self._reader.acknowledge_partitions()
            except MirrorFull:
                continue
            with self._has_read:
                self._readings += 1
                self._has_read.notify_all()

    def post(self, records: object, headers: dict[str, str] | None = None) -> httpx.Response:
        body = records if isinstance(records, bytes) else json.dumps(records).encode()
        return self.client.post("/bench", content=body, headers=headers if headers is not None else bearer())

    def entries(self) -> dict[str, str | None]:
        reader = self.mirror.status
        return {key: next(one.value for one in reader.origins(key)) for key in "abcde" if reader.origins(key)}

    def deliver(self) -> None:
        """Acknowledge everything pending, as the service does, and wake the source."""
        asyncio.run(self._deliver())
        self.wake()

    async def _deliver(self) -> None:
        delivery = self.mirror.delivery
        for lane in await delivery.lanes():
            while (claim := await delivery.claim(lane.id, max_items=100, max_bytes=10**6)) is not None:
                await delivery.acknowledge(claim)

    def rejected(self) -> list[tuple[object, str]]:
        return [(one.position, one.reason) for one in self.mirror.status.selected(Selection(), limit=100)]


class _Fallible:
    """The intake of a state file that is full while the test says so."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench.mirror.intake, name)

    def commit(self, *arguments: Any, **more: Any) -> int:
        if self._bench.full.is_set():
            raise MirrorFull("The disk is full.")
        return self._bench.mirror.intake.commit(*arguments, **more)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Bench(tmp_path, **options))


@pytest.mark.parametrize("mode", [{}, {"mode": "wake", "wakes": ["other"]}])
def test_a_paused_pipeline_refuses_its_clients_with_503_and_accepts_them_when_it_is_resumed(
    tmp_path: Path, mode: dict[str, Any]
) -> None:
    with Bench(tmp_path, **mode) as bench:
        bench.connector.context.paused.set()
        woken = list(bench.woken)
        refused = bench.post([{"part": "a", "mass": "1"}])
        assert (refused.status_code, refused.text, refused.headers["retry-after"]) == (
            503, "The pipeline is paused. Send the request again later.\n", "5",
        )  # fmt: skip
        assert (bench.entries(), bench.woken) == ({}, woken)
        assert bench.post([], headers={}).status_code == 401, (
            "a client without a token does not learn that it is paused"
        )
        bench.connector.context.paused.clear()
        assert bench.post([{"part": "a", "mass": "1"}]).status_code == 204


def test_a_request_is_acknowledged_when_its_records_are_durable(bench: Callable[..., Bench], tmp_path: Path) -> None:
    pushed = bench()
    assert pushed.post([{"part": "a", "mass": 0.10}, {"part": "b", "mass": "2"}]).status_code == 204
    observer = SqliteMirror.observe(tmp_path / "state.db")
    assert [one.value for one in observer.origins("a")] == ["0.1"]
    observer.close()
    assert pushed.post(b'{"part": "a", "mass": 0.30}').status_code == 204
    assert pushed.entries() == {"a": "0.30", "b": "2"}


def test_a_request_in_which_no_record_has_a_field_is_stored_as_rejected_and_the_response_says_why(
    bench: Callable[..., Bench],
) -> None:
    pushed = bench(requests_per_second=10_000)
    with ThreadPoolExecutor(8) as threads:  # a request is evaluated alone, although several are committed at once
        good = [threads.submit(pushed.post, [{"part": "a", "mass": "1"}, {"part": "b"}]) for _ in range(8)]
        bad = [threads.submit(pushed.post, [{"part": f"c{n}", "weight": "1"}]) for n in range(8)]
        assert {one.result(SECONDS).status_code for one in good} == {204}
        responses = {(one.result(SECONDS).status_code, one.result(SECONDS).text) for one in bad}
    ((status, text),) = responses
    assert status == 200
    assert text.startswith(
        "The records are stored as rejected. No record has a field 'mass'; the fields are 'part', 'weight'."
    )
    assert pushed.entries() == {"a": "1"}
    assert len(pushed.rejected()) == 8
    assert pushed.post({"part": "d", "mass": "4"}).status_code == 204, "only the request itself is rejected"


def test_known_messages_are_known_after_a_restart_also_when_they_left_the_cursor(tmp_path: Path) -> None:
    with Bench(tmp_path, requests_per_second=10_000) as pushed, ThreadPoolExecutor(8) as threads:
        sent = [
            threads.submit(pushed.post, {"part": "abcde"[n % 5], "mass": "1"}, bearer(f"m{n}")) for n in range(140)
        ]  # the cursor has 128
        assert {one.result(SECONDS).status_code for one in sent} == {204}
        pushed.post({"part": "a", "mass": "9"}, bearer("last"))
    with Bench(tmp_path) as pushed:
        for n in (0, 70, 139):
            assert pushed.post({"part": "a", "mass": "1"}, bearer(f"m{n}")).status_code == 204
        assert pushed.entries()["a"] == "9"


def test_a_bad_record_is_rejected_and_a_body_of_another_format_is_refused(bench: Callable[..., Bench]) -> None:
    pushed = bench()
    assert pushed.post(b'[{"part": "a", "mass": 1}, 7, {"mass": 3}]').status_code == 204
    assert [at for at, _ in pushed.rejected()] == [2, 3]
    assert pushed.post(b'[{"part": "b", "mass": 1}]').status_code == 204
    refused = pushed.post(b'[{"part": "c", "mass": 1}, {"part')
    assert refused.status_code == 422
    assert refused.text.startswith("The body ends in the middle")
    assert pushed.entries() == {"a": "1", "b": "1"}


def test_a_full_state_file_is_a_503_and_nothing_is_acknowledged(bench: Callable[..., Bench]) -> None:
    pushed = bench()
    pushed.full.set()
    for _ in range(2):  # the second one is refused before its body is read
        refused = pushed.post({"part": "a", "mass": 1}, bearer("m1"))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    pushed.full.clear()
    pushed.wake()
    while (response := pushed.post({"part": "a", "mass": 1}, bearer("m1"))).status_code == 503:
        pushed.wake()
    assert response.status_code == 204
    assert pushed.entries() == {"a": "1"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong-token-of-the-tests"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}\xff"}, 401),
        ({**bearer(), "Content-Encoding": "gzip"}, 415),
        ({**bearer("x" * 257)}, 401),
    ],
)
def test_a_request_that_is_not_accepted_has_a_sentence_without_a_secret(
    bench: Callable[..., Bench], headers: dict[str, str], status: int
) -> None:
    pushed = bench()
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    refused = pushed.client.post("/bench", content=b"[]", headers=raw)
    assert refused.status_code == status
    assert refused.text.count(" ") > 3
    assert TOKEN not in refused.text
    assert pushed.client.get("/bench").status_code == 405


def test_only_a_fresh_signature_of_the_body_is_accepted(bench: Callable[..., Bench]) -> None:
    pushed = bench(auth={**HMAC, "secret": ["whsec_" + "QUFB" * 8, SECRET]}, path="/bench")
    body = b'{"part": "a", "mass": 1}'
    assert pushed.post(body, signed(body, "m1", at=pushed.now)).status_code == 204
    wrong = [
        signed(body + b" ", "m2", at=pushed.now),
        signed(body, "m2", at=pushed.now, key=KEY[::-1]),
        signed(body, "m2", at=pushed.now - 301),
        signed(body, "m2", at=pushed.now + 302),
        {**signed(body, "m2", at=pushed.now), "webhook-id": "m3"},
        {**signed(body, "m2", at=pushed.now), "webhook-timestamp": "soon"},
        {name: text for name, text in signed(body, "m2").items() if name != "webhook-signature"},
        bearer("m2"),
    ]
    assert [pushed.post(body, headers).status_code for headers in wrong] == [401] * len(wrong)
    pushed.now += 3_600
    assert pushed.post(body, signed(body, "m1", at=pushed.now)).status_code == 204
    assert pushed.entries() == {"a": "1"}


def test_the_headers_of_svix_are_those_of_standard_webhooks(bench: Callable[..., Bench]) -> None:
    pushed = bench(auth=HMAC)
    body = b'\xef\xbb\xbf{"part": "a", "mass": 1}'  # with a byte order mark

    def svix(headers: dict[str, str]) -> dict[str, str]:
        return {name.replace("webhook-", "svix-"): text for name, text in headers.items()}

    good = svix(signed(body, "m1", at=pushed.now))
    assert pushed.post(body, good).status_code == 204
    assert pushed.post(body, good).status_code == 204, "a repetition"
    forged = svix(signed(body, "m2", at=pushed.now, key=KEY[::-1]))
    mixed = {**good, "webhook-id": "m3"}
    raw = [(name.encode(), text.encode()) for name, text in [*good.items(), ("svix-id", "m4")]]
    assert pushed.post(body, forged).status_code == 401
    assert pushed.post(body, mixed).status_code == 401, "all headers have one prefix"
    assert pushed.client.post("/bench", content=body, headers=raw).status_code == 400
    assert pushed.entries() == {"a": "1"}


def test_a_reading_ends_also_if_what_waits_last_is_known(tmp_path: Path) -> None:
    context = SourceContext(pipeline="p", base=tmp_path, now=time.time, steady=time.monotonic, kept_folder=tmp_path)
    options = {"address": free_address(), "path": "/bench", "auth": BEARER}
    connector = PushConnector(PushOptions.model_validate(options), context)
    inbox = connector._endpoint.inbox
    chunks = tuple(decode(b'[{"n": 1}]', Json(), name="a body"))
    for _ in range(64):  # the messages of one batch
        inbox.offer(PushedMessage(id="", chunks=chunks, size=10), 1)
    connector._known.add("m1")
    inbox.offer(PushedMessage(id="m1", chunks=chunks, size=10), 1)
    partition = Partition(name="bench", snapshot=False, replayable=False)
    batches = list(connector.read(partition, {"records": 0, "ids": connector._known.to_token()}))
    assert [(batch.records.height, batch.last) for batch in batches] == [(64, False), (0, True)]
    connector.close()


def test_a_body_that_is_too_large_is_refused_with_and_without_its_length(bench: Callable[..., Bench]) -> None:
    pushed = bench(max_body=1_000)
    assert pushed.post(b" " * 1_001).status_code == 413
    chunks = pushed.client.post("/bench", content=iter([b" " * 600, b" " * 600]), headers=bearer())
    assert chunks.status_code == 413
    assert pushed.post(b"[]" + b" " * 998).status_code == 204


def test_a_flood_gets_429_with_the_time_to_wait(bench: Callable[..., Bench]) -> None:
    pushed = bench(requests_per_second=0.01)
    assert pushed.post([]).status_code == 204  # it takes the only token
    refused = pushed.post([])
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 100


def test_a_request_that_is_not_authentic_does_not_count(bench: Callable[..., Bench]) -> None:
    pushed = bench(requests_per_second=0.01, auth=HMAC, mode="wake", wakes=["other"])
    body = b"{}"
    forged = signed(body, "m1", at=pushed.now, key=KEY[::-1])
    assert [pushed.post(body, forged).status_code for _ in range(3)] == [401] * 3
    assert pushed.post(body, {}).status_code == 401
    right = [pushed.post(body, signed(body, f"m{n}", at=pushed.now)).status_code for n in range(2)]
    assert right == [204, 429]


@pytest.mark.parametrize("part", ["headers", "body", "refused body"])
def test_slow_clients_keep_no_other_out(bench: Callable[..., Bench], part: str) -> None:
    pushed = bench(requests_per_second=1)
    begin = "POST /bench HTTP/1.1\r\nHost: x\r\n"
    if part == "body":
        begin += "".join(f"{name}: {value}\r\n" for name, value in bearer().items()) + "Content-Length: 99\r\n\r\n{"
    elif part == "refused body":
        begin += "Transfer-Encoding: chunked\r\n\r\n"
    host, port = pushed.address.split(":")
    with ExitStack() as stack:
        for _ in range(140):
            slow = stack.enter_context(socket.create_connection((host, int(port)), timeout=SECONDS))
            slow.sendall(begin.encode())
            assert part != "refused body" or slow.recv(12) == b"HTTP/1.1 401"
        with httpx.Client(timeout=SECONDS) as other:
            response = other.post(
                f"http://{pushed.address}/bench", content=b'{"part": "a", "mass": 1}', headers=bearer()
            )
        assert response.status_code == 204


def test_two_sources_share_an_address_and_not_a_path(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Bench(tmp_path / "one") as first:
        options = {"address": first.address, "auth": HMAC}
        context = SourceContext(pipeline="q", base=tmp_path, now=time.time)
        same = PushConnector(PushOptions.model_validate({**options, "path": "/bench"}), context)
        with pytest.raises(SourceBroken, match="Another pipeline has the path /bench"):
            same.watch(lambda: None).__enter__()
        second = PushConnector(PushOptions.model_validate({**options, "path": "/other"}), context)
        with second.watch(lambda: None):
            assert httpx.post(f"http://{first.address}/other").status_code == 401
        second.close()


def test_a_path_is_unknown_only_when_the_pipelines_have_had_time_to_start(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients take 404 as final, and stop sending. Another pipeline at the address may start or restart now."""
    pushed = bench()
    early = pushed.client.post("/other")
    assert (early.status_code, early.headers["retry-after"]) == (503, "5")
    monkeypatch.setattr("connectors.push.listener.BEGINNING_SECONDS", 0.0)
    assert pushed.client.post("/other").status_code == 404


def test_an_address_in_use_is_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        address = f"127.0.0.1:{used.getsockname()[1]}"
        options = PushOptions.model_validate({"address": address, "path": "/p", "auth": BEARER})
        connector = PushConnector(options, SourceContext(pipeline="p", base=tmp_path, now=time.time))
        with connector.watch(lambda: None):
            with pytest.raises(SourceUnavailable, match=r"can't listen at .*Address already in use"):
                list(connector.partitions())
            health = connector.health()
            assert health is not None
            assert health.connected_since is None
        connector.close()


def test_a_request_wakes_other_pipelines(bench: Callable[..., Bench]) -> None:
    pushed = bench(mode="wake", wakes=["pdm"])
    assert pushed.woken == ["pdm"]  # at the start, because a request before it may not have had its effect
    assert pushed.post(b"anything").status_code == 204
    assert pushed.woken == ["pdm", "pdm"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "localhost:80"}, {"address": "127.0.0.1"}, {"address": "::1:80"}, {"path": "bench"},
        {"auth": {"type": "bearer", "token": "short"}}, {"auth": {"type": "hmac", "secret": "whsec_AAAA"}},
        {"mode": "wake"}, {"wakes": ["p"]}, {"path": "/a b"},
    ],
)  # fmt: skip
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PushOptions.model_validate({"path": "/p", "auth": BEARER, **wrong})
    with pytest.raises(ValidationError):
        PushOptions.model_validate({"path": "/p"})


def test_a_request_can_wait_until_the_service_has_its_records(tmp_path: Path) -> None:
    with Bench(tmp_path, acknowledge="delivered") as bench, ThreadPoolExecutor(3) as threads:
        first = threads.submit(bench.post, [{"part": "a", "mass": "1"}], {**bearer(), "webhook-id": "one"})
        bench.wait_for_entries("a")
        repeated = threads.submit(bench.post, [{"part": "a", "mass": "1"}], {**bearer(), "webhook-id": "one"})
        second = threads.submit(bench.post, [{"part": "b", "mass": "2"}], {**bearer(), "webhook-id": "two"})
        bench.wait_for_entries("b")
        bench.connector.context.paused.set()  # the next request is refused, so the former ones have been read
        assert bench.post([]).status_code == 503
        bench.connector.context.paused.clear()
        assert not any(response.done() for response in (first, repeated, second))
        bench.deliver()
        assert [one.result(SECONDS).status_code for one in (first, repeated, second)] == [204, 204, 204]
        # Nothing of it is pending any more, but the source may have been restarted meanwhile and does not know it.
        again = bench.post([{"part": "a", "mass": "0"}], {**bearer(), "webhook-id": "one"})
        assert (again.status_code, bench.entries()) == (204, {"a": "1", "b": "2"})


def test_a_request_that_waits_for_the_service_is_not_acknowledged_when_the_daemon_stops(tmp_path: Path) -> None:
    with Bench(tmp_path, acknowledge="delivered") as bench, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(bench.post, [{"part": "a", "mass": "1"}])
        bench.wait_for_entries("a")
        bench.connector.close()
        with suppress(httpx.TransportError):  # the listener may end before the response is sent
            assert waiting.result(SECONDS).status_code == 503
