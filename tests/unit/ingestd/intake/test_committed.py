"""The notification of a connector after each durable commit of an incremental partition."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, Connector, Cursor, Partition, SourceContext, pack
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import AcknowledgementFailed
from tests.support.scripted_source import NoOptions


class Stream(Connector):
    """A stream of three messages that records what is durable when it is notified of a commit."""

    Options = NoOptions
    snapshot = False

    def __init__(self, base: Path) -> None:
        super().__init__(NoOptions(), SourceContext(pipeline="p", base=base, now=lambda: 0.0))
        self.committed_at: list[tuple[object, int, int]] = []
        self.failures: list[Exception] = []

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name="stream", snapshot=self.snapshot)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - one partition
        first = int(str(cursor["n"])) if cursor is not None else 0
        for n in range(first + 1, 4):
            yield pack([{"k": f"k{n}", "v": str(n)}], cursor={"n": n}, positions=[n], last=n == 3)

    def committed(self, partition: Partition, cursor: Cursor) -> None:
        assert partition == Partition(name="stream", snapshot=self.snapshot)
        if self.failures:
            raise self.failures.pop()
        # Another connection sees only what was committed.
        with closing(sqlite3.connect(self.context.base / "state.db")) as state, state:
            [(entries,)] = state.execute("SELECT count(*) FROM entry")
        self.committed_at.append((cursor["n"], entries, threading.get_ident()))


def read_once(connector: Stream) -> tuple[Reader, list[Event]]:
    events: list[Event] = []
    mirror = SqliteMirror.open(connector.context.base / "state.db")
    reader = Reader(
        pipeline="p", connector=connector, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=events.append,
    )  # fmt: skip
    try:
        reader.read_pass()
    finally:
        mirror.close()
    return reader, events


def test_each_commit_of_an_unacknowledged_stream_is_reported_in_the_thread_of_the_source(tmp_path: Path) -> None:
    connector = Stream(tmp_path)
    read_once(connector)
    here = threading.get_ident()
    assert connector.committed_at == [(1, 1, here), (2, 2, here), (3, 3, here)]


def test_a_snapshot_has_no_commit_before_its_end_to_report(tmp_path: Path) -> None:
    connector = Stream(tmp_path)
    connector.snapshot = True
    read_once(connector)
    assert connector.committed_at == []


@pytest.mark.parametrize("failures", [1, 3])
def test_a_failed_notification_does_not_end_the_reading(failures: int, tmp_path: Path) -> None:
    connector = Stream(tmp_path)
    connector.failures = [OSError("The broker closed the connection.") for _ in range(failures)]
    reader, events = read_once(connector)
    assert [event.sentence for event in events if isinstance(event, AcknowledgementFailed)] == [
        "The broker closed the connection."
    ]
    assert [n for n, _, _ in connector.committed_at] == [1, 2, 3][failures:]
    is_known = "The broker closed the connection." in {notice.sentence for notice in reader.notices()}
    assert is_known == (failures == 3)
