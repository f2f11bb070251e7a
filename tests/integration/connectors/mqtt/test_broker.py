"""The mqtt connector with a real broker that is killed, loses its session, refuses, or keeps messages of former topics."""

from __future__ import annotations

import math
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from connectors.mqtt import MqttConnector, MqttOptions, connection
from connectors.mqtt.connection import BrokerConnection
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader as IntakeReader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, Cursor, Reject, SourceBroken, SourceContext, SourceUnavailable
from tests.support.certificates import self_signed
from tests.support.mosquitto import Mosquitto, mosquitto, permit
from tests.support.scripted_broker import scripted_broker

SECONDS = 30.0
TOPICS = [{"filter": "bench/{bench}/+"}]


class Reader:
    """Reads like the daemon: commits each batch, and reads again when it is woken."""

    def __init__(
        self, folder: Path, url: str, cursor: Cursor | None = None, *, until: float | None = None,
        unsaved: MutableMapping[str, bytes] | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self.log: list[str] = []
        context = SourceContext(
            pipeline="bench", base=folder, now=time.time, steady=time.monotonic, kept_folder=folder / "kept",
            log=self.log.append, until=until, unsaved=unsaved,
        )  # fmt: skip
        self.connector = MqttConnector(MqttOptions.model_validate({"url": url, "topics": TOPICS, **more}), context)
        (self.partition,) = self.connector.partitions()
        self.cursor = cursor
        self.values: list[tuple[str, str]] = []
        self.rejects: list[Reject] = []
        self.woken = threading.Event()
        self._watch = self.connector.watch(self.woken.set)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.__exit__(None, None, None)
        self.connector.context.stopping.set()
        self.connector.interrupt()
        self.connector.close()

    def read(self) -> None:
        for batch in self.connector.read(self.partition, self.cursor):
            assert isinstance(batch, Batch)
            names = [name for name in ("mqtt.topic", "value") if batch.records.height]
            self.values += batch.records.select(names).rows()
            self.rejects += batch.rejects
            self.cursor = batch.cursor
            self.connector.committed(self.partition, batch.cursor)

    def until(self, done: Callable[[], bool]) -> None:
        """Read whenever it is woken; while the broker is away, also without that, as the daemon does."""
        end = time.monotonic() + SECONDS
        while True:
            try:
                self.read()
            except SourceUnavailable as error:
                if time.monotonic() > end:
                    raise AssertionError(f"{error} {self.values} {self.rejects}") from error
                self.woken.wait(0.1)
            else:
                if done():
                    return
                assert self.woken.wait(end - time.monotonic()), (self.values, self.rejects, self.log)
            self.woken.clear()

    def has(self, value: tuple[str, str]) -> bool:
        return value in self.values

    def until_read(self, count: int) -> list[str]:
        self.until(lambda: len(self.values) + len(self.rejects) >= count)
        return [value for _, value in self.values]


@contextmanager
def secure_broker(folder: Path) -> Iterator[Mosquitto]:
    """A broker with TLS; its certificate is ``broker.pem`` in the folder."""
    files = self_signed(folder, "broker")
    permit(folder, *files)
    with mosquitto(f"certfile {files[0]}", f"keyfile {files[1]}") as running:
        yield running


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    with mosquitto() as running:
        yield running


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_broker_that_is_killed_and_keeps_its_sessions_loses_nothing(tmp_path: Path, version: str) -> None:
    with mosquitto(persistent=True) as broker, Reader(tmp_path, broker.url, version=version) as reader:
        reader.read()
        for part in range(3):
            broker.publish(*(("bench/n/a", f"{part * 20 + number}") for number in range(20)))
            broker.restart(signal.SIGTERM if part else signal.SIGKILL)
            if not part:  # what a killed Mosquitto had not saved yet is lost at the broker, not here
                broker.publish(*(("bench/n/a", f"{number}") for number in range(20)))
            last = ("bench/n/a", f"{part * 20 + 19}")
            reader.until(partial(reader.has, last))
        found = [int(value) for _, value in reader.values]
        assert set(found) == set(range(60))
        assert found[-40:] == list(range(20, 60))


def test_a_lost_session_is_reported_and_retained_values_are_read_again(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url) as reader:
        reader.read()
        broker.publish(("bench/n/a", "1"), retain=True)
        assert reader.until_read(1) == ["1"]
        assert list(reader.connector.notices()) == []
        broker.restart(signal.SIGKILL)
        broker.publish(("bench/n/a", "2"), retain=True)
        assert reader.until_read(2) == ["1", "2"]
        (notice,) = reader.connector.notices()
        assert "no longer had the session" in notice
        assert "messages that were published before and not read are lost" in notice
        assert reader.log == [notice]


def test_messages_that_arrived_before_the_broker_lost_the_session_are_read(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url) as reader:
        reader.read()
        broker.publish(("bench/n/a", "1"))
        assert reader.woken.wait(SECONDS)
        broker.restart(signal.SIGKILL)
        assert reader.until_read(1) == ["1"]


def test_an_acknowledgement_of_a_former_connection_is_not_sent_on_a_new_one(broker: Mosquitto) -> None:
    options = MqttOptions.model_validate({"url": broker.url, "topics": TOPICS})
    arrived: dict[int, list[Any]] = {number: [] for number in range(3)}
    events = [threading.Event() for _ in arrived]
    connections = []

    def connect(number: int) -> BrokerConnection:
        def receive(_: BrokerConnection, message: Any) -> None:
            arrived[number].append(message)
            events[number].set()

        connections.append(BrokerConnection(options, client_id="one", version="5", receive=receive))
        connections[-1].open()
        connections[-1].subscribe({"bench/+/+": 1}, retained=False)
        connections[-1].wait_until_granted()  # a message before that is not for this session
        return connections[-1]

    first = connect(0)
    broker.publish(("bench/n/a", "1"))
    assert events[0].wait(SECONDS)
    second = connect(1)
    assert events[1].wait(SECONDS)
    first.acknowledge(arrived[0][0].mid, 1)
    second.close()
    third = connect(2)
    assert events[2].wait(SECONDS)
    assert [(one[0].payload, one[0].dup) for one in arrived.values()] == [(b"1", False), (b"1", True), (b"1", True)]
    third.acknowledge(arrived[2][0].mid, 1)
    for one in connections:
        one.close()


def test_a_stored_message_that_is_repeated_is_acknowledged_and_not_read(
    tmp_path: Path, broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Reader(tmp_path, broker.url) as reader:
        reader.read()
        broker.publish(("bench/n/a", "1"), ("bench/n/a", "2"))
        monkeypatch.setattr(reader.connector, "committed", lambda *_: None)  # killed after the commit
        assert reader.until_read(2) == ["1", "2"]
        cursor = reader.cursor
    with Reader(tmp_path, broker.url, cursor) as second:
        second.read()
        broker.publish(("bench/n/a", "3"))
        assert second.until_read(1) == ["3"]
    with Reader(tmp_path, broker.url, cursor) as third:  # nothing is left of them in the session
        third.read()
        broker.publish(("bench/n/a", "4"))
        assert third.until_read(1) == ["4"]


def test_what_was_read_and_not_stored_is_read_again(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url) as reader:
        reader.read()
        broker.publish(("bench/n/a", "1"), ("bench/n/a", "2"))
        while not next(iter(reader.connector.read(reader.partition, None)), None):  # a full disk ends it here
            assert reader.woken.wait(SECONDS)
    with Reader(tmp_path, broker.url) as reader:  # the broker has them, because they were not acknowledged
        while not next(iter(reader.connector.read(reader.partition, None)), None):
            assert reader.woken.wait(SECONDS)
        assert reader.until_read(2) == ["1", "2"]


def test_messages_of_topics_that_are_no_longer_configured_leave_the_session_unread(
    tmp_path: Path, broker: Mosquitto
) -> None:
    former = [*TOPICS, {"filter": "old/#"}]
    with Reader(tmp_path, broker.url, topics=former) as reader:
        reader.read()
    broker.publish(("old/a", "1"), ("bench/n/a", "2"))
    with Reader(tmp_path, broker.url) as reader:
        assert reader.until_read(1) == ["2"]
        broker.publish(("old/a", "3"), ("bench/n/a", "4"))
        assert reader.until_read(2) == ["2", "4"]
        cursor = reader.cursor
    broker.publish(("old/a", "5"))
    with Reader(tmp_path, broker.url, cursor, topics=former) as reader:
        reader.read()
        broker.publish(("old/a", "6"))
        assert reader.until_read(1) == ["6"]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize(("retained", "expected"), [("take", ["1", "2"]), ("ignore", ["2"])])
def test_retained_messages_are_taken_or_ignored(
    tmp_path: Path, broker: Mosquitto, retained: str, expected: list[str], version: str
) -> None:
    broker.publish(("bench/n/a", "1"), retain=True)
    with Reader(tmp_path, broker.url, retained=retained, version=version) as reader:
        reader.read()
        if retained == "take":
            reader.until_read(1)
        broker.publish(("bench/n/a", "2"))
        assert reader.until_read(len(expected)) == expected


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_retained_message_does_not_replace_a_newer_value_at_the_next_connection(
    tmp_path: Path, broker: Mosquitto, version: str
) -> None:
    broker.publish(("bench/n/a", "old"), retain=True)
    with Reader(tmp_path, broker.url, version=version, payload="text") as reader:
        assert reader.until_read(1) == ["old"]
        broker.publish(("bench/n/a", "new"))
        assert reader.until_read(2) == ["old", "new"]
        cursor = reader.cursor
    topics = [*TOPICS, {"filter": "other/#"}]
    with Reader(tmp_path, broker.url, cursor, version=version, payload="text", topics=topics) as reader:
        reader.read()
        broker.publish(("other/a", "1"))
        assert reader.until_read(1) == ["1"]


@pytest.mark.parametrize("responds", [True, False])
def test_a_broker_that_speaks_only_3_1_1_is_used_with_that_and_check_says_what_is_lost(
    tmp_path: Path, responds: bool
) -> None:
    with scripted_broker(("bench/n/a", b"7"), responds=responds) as broker, Reader(tmp_path, broker.url) as reader:
        assert reader.until_read(1) == ["7"]
        assert broker.levels == [5, 4]
        connection, topics = reader.connector.verify()
        assert broker.levels == [5, 4, 4], "the version is not tried again"
        assert connection.sentence.startswith(
            f"The broker 127.0.0.1:{broker.port} accepts the client with MQTT 3.1.1. With MQTT 3.1.1 session_expiry has no effect"
        )
        assert "the broker alone decides how long it keeps messages" in connection.sentence
        assert topics.outcome == "passed"


def test_a_configured_version_is_the_only_one_that_is_tried(tmp_path: Path) -> None:
    with scripted_broker() as broker, Reader(tmp_path, broker.url, version=5) as reader:
        with pytest.raises(SourceBroken, match="Set version to a version that it supports"):
            reader.read()
        assert broker.levels == [5]


def test_messages_are_read_before_the_subscriptions_are_confirmed(tmp_path: Path) -> None:
    waiting = [("bench/n/a", str(number).encode()) for number in range(199)]
    with scripted_broker(*waiting) as broker, Reader(tmp_path, broker.url, version="3.1.1") as reader:
        assert reader.until_read(199) == [str(number) for number in range(199)]
        reader.until(lambda: reader.connector.health().connected_since is not None)
        assert broker.subscribed == [1]


def test_unusable_messages_are_rejected_and_acknowledged(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url, max_payload_bytes=2000) as reader:
        reader.read()
        broker.publish(
            ("bench/n/a", "{"), ("bench/n/a", b"\xff"), ("bench/n/a", "1" * 2001), ("bench/n/a", ""), ("bench/n/b", "7")
        )
        assert reader.until_read(4) == ["7"]
        assert [reject.position for reject in reader.rejects] == [1, 2, 3]
        assert "has 2001 bytes, more than 2000 (max_payload_bytes)" in reader.rejects[2].reason
        assert len(reader.rejects[2].record["text"] or "") == 1000
        assert reader.rejects[1].record["text"] == r"\xff"
        cursor = reader.cursor
    with Reader(tmp_path, broker.url, cursor) as reader:
        broker.publish(("bench/n/a", "8"))
        assert reader.until_read(1) == ["8"]


def test_messages_without_a_mapped_field_are_rejected_and_kept(tmp_path: Path, broker: Mosquitto) -> None:
    mirror = SqliteMirror.open(tmp_path / "state.db")
    mirror.intake.activate(["bench"])
    with Reader(tmp_path, broker.url) as reader:
        intake = IntakeReader(
            pipeline="bench", connector=reader.connector, mapping=Mapping([EntrySpec(key="{mqtt.topic}", value="{mass}")]),
            sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=lambda _: None,
        )  # fmt: skip

        def read_until(done: Callable[[], bool]) -> None:
            intake.read_pass()
            while not done():
                assert reader.woken.wait(SECONDS)
                reader.woken.clear()
                intake.read_pass()

        read_until(lambda: reader.connector.health().connected_since is not None)
        broker.publish(("bench/n/a", '{"mass": 1}'))
        read_until(lambda: mirror.status.pending() == 1)
        broker.publish(("bench/n/a", '{"weight": 2}'))
        read_until(lambda: mirror.status.rejected() == 1)
    (rejection,) = mirror.status.selected(Selection(), limit=2)
    assert rejection.reason.startswith("No record has a field 'mass'; the fields are 'weight'")
    assert rejection.record["weight"] == "2"
    assert mirror.status.pending() == 1, "the former value stays"
    mirror.close()


def test_a_payload_can_be_a_file_with_several_records(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url, payload={"type": "csv"}) as reader:
        reader.read()
        broker.publish(("bench/n/a", "part,value\nP1,0.10\nP2,7\n"), ("bench/n/b", "part,value\nP3,8,9\nP4,1\n"))
        assert reader.until_read(4) == ["0.10", "7", "1"]
        assert len(reader.rejects) == 1
        assert reader.rejects[0].record["mqtt.topic"] == "bench/n/b"


def test_a_refused_password_is_one_sentence_and_one_attempt(tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    passwords.touch()
    program = shutil.which("mosquitto_passwd") or pytest.skip("no mosquitto_passwd: install Debian's package mosquitto")
    subprocess.run([program, "-b", str(passwords), "reader", "right"], check=True)
    permit(tmp_path, passwords)
    with mosquitto(f"password_file {passwords}", anonymous=False) as broker:
        with Reader(tmp_path, broker.url, user="reader", password="s3cret-wrong") as reader:
            sentences = set()
            for _ in range(3):
                with pytest.raises(SourceBroken) as refused:
                    reader.read()
                sentences.add(str(refused.value))
            (sentence,) = sentences
            assert sentence == (
                f"The broker 127.0.0.1:{broker.port} refused the connection: Not authorized. Correct user and password, or the"
                " permissions at the broker. A running daemon makes no connection until `ingestd reload`, because attempts may"
                " lock the account."
            )
            assert broker.log().count("New connection from") == 2  # one was that of the test
            assert not reader.woken.wait(0.3)
            assert [step.outcome for step in reader.connector.verify()] == ["failed"]
            assert reader.connector.health().sentence in sentences
        with Reader(tmp_path, broker.url, user="reader", password="right") as reader:
            reader.read()
            assert [step.outcome for step in reader.connector.verify()] == ["passed", "passed"]
            assert reader.connector.health().connected_since is not None


def test_a_certificate_is_trusted_by_ca_file_only(tmp_path: Path) -> None:
    with secure_broker(tmp_path) as broker:
        url = broker.url.replace("mqtt:", "mqtts:")
        with Reader(tmp_path, url) as reader, pytest.raises(SourceUnavailable, match=r"not trusted .* Set ca_file"):
            reader.read()
        with Reader(tmp_path, url, ca_file="broker.pem") as reader:
            reader.read()
            assert reader.connector.health().connected_since is not None


def test_another_name_another_protocol_and_another_port_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RESPONSE_SECONDS", 0.5)  # an HTTP server waits for the end of a line

    def sentence(url: str, **more: Any) -> str:
        with Reader(tmp_path, url, **more) as reader:
            (step,) = reader.connector.verify()
            with pytest.raises(SourceUnavailable) as caught:
                reader.read()
            assert step.sentence == str(caught.value)
            return step.sentence

    with secure_broker(tmp_path) as broker:
        named = sentence(f"mqtts://localhost:{broker.port}", ca_file="broker.pem")
        assert "its certificate is for another name" in named
        assert "Use a name of the certificate in url" in named
        assert (
            sentence(broker.url)
            == f"127.0.0.1:{broker.port} expects TLS. Write mqtts:// in url, or use the port without TLS."
        )
    with mosquitto() as broker:
        plain = sentence(broker.url.replace("mqtt:", "mqtts:"))
        assert plain == f"127.0.0.1:{broker.port} does not speak TLS. Write mqtt:// in url, or use the port with TLS."
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        for scheme in ("mqtt", "mqtts"):
            found = sentence(f"{scheme}://127.0.0.1:{server.server_port}")
            assert found.startswith(f"At 127.0.0.1:{server.server_port} an HTTP server responds, and not a broker.")
        server.shutdown()


def test_a_sync_ends_after_a_time_without_messages_or_at_its_end(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url, until=math.inf, sync_seconds=0.1) as reader:
        reader.read()
    broker.publish(*(("bench/n/a", f"{number}") for number in range(300)))
    with Reader(tmp_path, broker.url, until=math.inf, sync_seconds=0.5) as reader:
        reader.read()
        assert [value for _, value in reader.values] == [str(number) for number in range(300)]
    began = time.monotonic()
    with Reader(tmp_path, broker.url, reader.cursor, until=began + 0.2, sync_seconds=600) as reader:
        reader.read()
    assert time.monotonic() - began >= 0.2


def test_a_process_that_only_looks_takes_no_message(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url) as reader:
        reader.read()
    broker.publish(("bench/n/a", "1"))
    with Reader(tmp_path, broker.url, until=math.inf, unsaved={}) as looking:
        with pytest.raises(SourceUnavailable, match="by the daemon and by `ingestd sync` only"):
            looking.read()
        assert [step.outcome for step in looking.connector.verify()] == ["passed", "passed"]
    with Reader(tmp_path, broker.url) as reader:
        assert reader.until_read(1) == ["1"]


def test_a_broker_that_does_not_respond_is_left_at_an_interruption(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reader = Reader(tmp_path, f"mqtt://127.0.0.1:{silent.getsockname()[1]}")
        failed: list[str] = []

        def read() -> None:
            with pytest.raises(SourceUnavailable) as error:
                reader.read()
            failed.append(str(error.value))

        thread = threading.Thread(target=read)
        thread.start()
        with silent.accept()[0] as connection:
            connection.recv(1)
            reader.connector.context.stopping.set()
            reader.connector.interrupt()
            thread.join(SECONDS)
            assert failed == ["The connection was interrupted."]


def test_a_failed_attempt_does_not_wake_the_source_to_the_next_one(tmp_path: Path, broker: Mosquitto) -> None:
    broker.stop()
    with Reader(tmp_path, broker.url) as reader:
        with pytest.raises(SourceUnavailable, match=r"is not reachable: .*refused"):
            reader.read()
        assert not reader.woken.wait(0.3)
        broker.start()
        reader.read()
        broker.stop()
        assert reader.woken.wait(SECONDS)


def test_a_future_or_foreign_cursor_is_refused_with_a_sentence(tmp_path: Path, broker: Mosquitto) -> None:
    with Reader(tmp_path, broker.url, {"version": 9}) as reader, pytest.raises(SourceBroken, match="cursor reset"):
        reader.read()


def test_why_says_what_a_topic_waits_for(tmp_path: Path) -> None:
    with mosquitto() as broker, Reader(tmp_path, broker.url) as reader:
        explain = reader.connector.explain
        assert explain(reader.partition.name) == f"Not connected to {reader.connector.options.address}."
        reader.read()
        connected = f"Connected to {reader.connector.options.address}. Subscriptions: 1."
        begin = "The subscription bench/{bench}/+ with QoS 1 covers the topic bench/north/t1."
        assert explain(reader.partition.name) is None
        assert explain("bench/north") is None
        assert explain("bench/north/t1") == f"{begin} {connected} No message of this topic arrived in this process."
        reader.woken.clear()
        broker.publish(("bench/north/t1", "20.50"))
        assert reader.woken.wait(SECONDS)
        waiting = "Messages of this source that are not stored yet: 1."
        assert explain(reader.partition.name) == f"{connected} {waiting}"
        found = explain("bench/north/t1") or ""
        assert found.startswith(f"{begin} {connected} Its last message arrived 20")
        assert found.endswith(f" UTC. {waiting}")
        reader.until(lambda: reader.values == [("bench/north/t1", "20.50")])
        assert (explain("bench/north/t1") or "").endswith(" UTC.")
        reader.woken.clear()
        broker.stop(signal.SIGKILL)
        assert reader.woken.wait(SECONDS)
        assert connected not in (explain("bench/north/t1") or "")
