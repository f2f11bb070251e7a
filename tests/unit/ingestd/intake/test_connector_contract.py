"""What the runtime gives a connector of a subscription, and what it shows of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.daemon.status import Status
from ingestd.daemon.status_text import format_status, health_sentence
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Acknowledgement, Batch, ConnectionHealth, Connector, Cursor, Partition, SourceContext, pack
from tests.support.scripted_source import NoOptions

SECONDS = 30.0
QUEUE = Partition(name="queue", snapshot=False, deletes="keep", replayable=False)


class Subscription(Connector):
    """Waits for a message until the source ends. ``acknowledged``: the acknowledged partitions."""

    Options = NoOptions

    def __init__(self, base: Path, *, waits: bool = False) -> None:
        super().__init__(NoOptions(), SourceContext(pipeline="p", base=base, now=lambda: 0.0))
        self.waits = waits
        self.state: ConnectionHealth | None = None
        self.failure: Exception | None = None
        self.acknowledged: list[Partition] = []
        self.was_stopped = False
        self.ends = True
        self.reading = threading.Event()

    def partitions(self) -> Iterable[Partition]:
        return [QUEUE]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        if self.waits:
            self.reading.set()
            self.was_stopped = self.context.stopping.wait(SECONDS)
            return
        if cursor is None:
            yield pack([{"k": "a", "v": "1"}], cursor={"n": 1}, last=self.ends)

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: ARG002
        self.acknowledged.append(partition)

    def health(self) -> ConnectionHealth | None:
        if self.failure is not None:
            raise self.failure
        return self.state


def reader_of(connector: Subscription, mirror: SqliteMirror) -> Reader:
    return Reader(
        pipeline="p", connector=connector, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=lambda _: None,
    )  # fmt: skip


async def deliver(mirror: SqliteMirror) -> None:
    (lane,) = await mirror.delivery.lanes()
    while (claim := await mirror.delivery.claim(lane.id, max_items=10, max_bytes=1_000)) is not None:
        await mirror.delivery.acknowledge(claim)


@pytest.mark.parametrize("restart", [False, True])
def test_an_acknowledgement_has_the_partition_as_the_source_listed_it(tmp_path: Path, restart: bool) -> None:
    connector = Subscription(tmp_path)
    mirror = SqliteMirror.open(tmp_path / "state.db")
    reader_of(connector, mirror).read_pass()
    asyncio.run(deliver(mirror))
    if restart:
        mirror.close()
        mirror = SqliteMirror.open(tmp_path / "state.db")
    assert reader_of(connector, mirror).acknowledge_partitions() == 1
    mirror.close()
    assert connector.acknowledged == [QUEUE]


def test_a_snapshot_that_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(ValueError, match="Use snapshot=False"):
        Partition(name="p", replayable=False)


def test_a_reading_without_its_end_is_reported_as_a_fault_of_the_connector(tmp_path: Path) -> None:
    connector = Subscription(tmp_path)
    connector.ends = False
    with closing(SqliteMirror.open(tmp_path / "state.db")) as mirror:
        reader_of(connector, mirror).read_pass()
        (pipeline,) = mirror.status.pipelines()
        assert pipeline.failure is not None
        assert "did not mark the end of the reading: no batch has last=True" in pipeline.failure
        assert mirror.status.pending() == 1


def test_a_waiting_reading_is_notified_of_the_end(tmp_path: Path) -> None:
    connector = Subscription(tmp_path, waits=True)
    mirror = SqliteMirror.open(tmp_path / "state.db")
    reader = reader_of(connector, mirror)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(reader.read_pass)
        assert connector.reading.wait(SECONDS)
        reader.stop()
        reading.result(SECONDS)
    mirror.close()
    assert connector.was_stopped


def test_the_state_of_a_connection_is_in_the_status(tmp_path: Path) -> None:
    connector = Subscription(tmp_path)
    mirror = SqliteMirror.open(tmp_path / "state.db")
    reader = reader_of(connector, mirror)
    assert reader.health() is None
    connector.state = ConnectionHealth(
        sentence="Subscribed to bench/+.", connected_since=0.0, lag_seconds=3.4, dropped=2
    )
    found = reader.health()
    assert found is not None
    status = Status(
        configuration="c", state="s", exists=True, pid=1, pending=0, rejected=0, pipelines=(), sinks=(),
        rejections=(), health=(found,),
    )  # fmt: skip
    assert (
        "source p: connected since 1970-01-01 00:00:00 UTC, 3 s behind, 2 messages dropped since the start. "
        "Subscribed to bench/+." in format_status(status, as_json=False)
    )
    assert json.loads(format_status(status, as_json=True))["health"] == [
        {
            "pipeline": "p", "sentence": "Subscribed to bench/+.", "connected_since": 0.0, "lag_seconds": 3.4,
            "dropped": 2, "stays_connected": True,
        }
    ]  # fmt: skip
    assert health_sentence(replace(found, connected_since=None)).startswith("not connected, 3 s behind, ")
    connector.state = ConnectionHealth(sentence="The last request succeeded.", stays_connected=False)
    between = reader.health()
    assert between is not None
    assert health_sentence(between) == "The last request succeeded."
    connector.failure = ValueError("no state")
    failed = reader.health()
    assert failed is not None
    assert failed.sentence.startswith("The connector failed to report its state: ")
    mirror.close()
