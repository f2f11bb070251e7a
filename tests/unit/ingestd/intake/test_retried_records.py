"""Retries of rejected records that their source does not repeat: a queue, and a log with a removed rotated file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connectors.log import LogConnector, LogOptions
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, Connector, Cursor, Partition, RecordUnreadable, SourceContext, pack
from tests.support.desired_entries import desire_all
from tests.support.scripted_source import NoOptions

SINK = SinkAddress(workspace="w", by="label", name="s")
STRICT = Mapping([EntrySpec(key="{part}", value="{mass}"), EntrySpec(key="{part}.{unit}", value="{mass}")])
LAX = Mapping([EntrySpec(key="{part}", value="{mass}")])
ALL = Selection()


@dataclass
class Queue:
    """Messages ``part;mass`` or ``part;mass;unit``; each is given out once. ``cursors``: those of the readings."""

    messages: list[str] = field(default_factory=list)
    taken: int = 0
    cursors: list[Cursor | None] = field(default_factory=list)


class QueueConnector(Connector):
    """Takes the messages of a queue. The cursor has their number, which is also the position of each."""

    Options = NoOptions

    def __init__(self, queue: Queue, *, replayable: bool, has_order: bool = True) -> None:
        super().__init__(NoOptions(), SourceContext(pipeline="pipe", base=Path(), now=lambda: 0.0))
        self.queue = queue
        self.replayable = replayable
        self.has_order = has_order

    def partitions(self) -> Iterable[Partition]:
        return [Partition(name="queue", snapshot=False, replayable=self.replayable)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch | RecordUnreadable]:  # noqa: ARG002 - one
        self.queue.cursors.append(cursor)
        while self.queue.messages:
            message, *self.queue.messages = self.queue.messages
            self.queue.taken += 1
            number = self.queue.taken
            fields = dict(zip(("part", "mass", "unit"), message.split(";"), strict=False))
            if len(fields) == 1:
                yield RecordUnreadable("The message has no semicolon.", position=number, record={"text": message})
            yield pack(
                [fields] if len(fields) > 1 else [],
                positions=[number if self.has_order else f"message {number}"] if len(fields) > 1 else [],
                cursor={"taken": number},
                last=not self.queue.messages,
            )


@contextmanager
def opened(base: Path, connector: Connector, mapping: Mapping) -> Iterator[tuple[SqliteMirror, Reader]]:
    mirror = SqliteMirror.open(base / "state.db")
    try:
        mirror.intake.activate(["pipe"])
        yield (
            mirror,
            Reader(
                pipeline="pipe",
                connector=connector,
                mapping=mapping,
                sink=SINK,
                mirror=mirror.intake,
                emit=lambda _: None,
            ),
        )
    finally:
        mirror.close()


def rejected(mirror: SqliteMirror) -> list[tuple[object, str]]:
    return [(one.position, one.reason) for one in mirror.status.selected(ALL, limit=100)]


def value(mirror: SqliteMirror, key: str) -> str | None:
    return next((origin.value for origin in mirror.status.origins(key)), None)


def retry(mirror: SqliteMirror, reader: Reader) -> None:
    asyncio.run(mirror.rejected.retry(ALL))
    reader.remap()


@pytest.mark.parametrize("restart", [False, True])
def test_a_retry_maps_the_stored_record_of_a_queue_and_keeps_its_cursor(tmp_path: Path, restart: bool) -> None:
    queue = Queue(["a;1;kg", "b;2", "c;3;kg"])
    with opened(tmp_path, QueueConnector(queue, replayable=False), STRICT) as (mirror, reader):
        reader.read_pass()
        assert [at for at, _ in rejected(mirror)] == [2]
        retry(mirror, reader)
        if not restart:
            reader.read_pass()
            assert [at for at, _ in rejected(mirror)] == [2]  # the mapping is the same
            retry(mirror, reader)
    queue.messages.append("d;4;kg")
    with opened(tmp_path, QueueConnector(queue, replayable=False), LAX) as (mirror, reader):
        reader.read_pass()
        assert rejected(mirror) == []
        assert [value(mirror, key) for key in "abcd"] == ["1", "2", "3", "4"]
    assert None not in queue.cursors[1:]


def test_another_mapping_does_not_reset_the_cursor_of_a_queue_and_loses_no_rejected_record(tmp_path: Path) -> None:
    queue = Queue(["a;1", "b"])
    with opened(tmp_path, QueueConnector(queue, replayable=False), STRICT) as (mirror, reader):
        reader.read_pass()
    queue.messages.append("c;3")
    with opened(tmp_path, QueueConnector(queue, replayable=False), LAX) as (mirror, reader):
        reader.read_pass()
        assert [at for at, _ in rejected(mirror)] == [1, 2]
        retry(mirror, reader)
        reader.read_pass()
        assert rejected(mirror) == [(2, "The message has no semicolon.")]
        assert value(mirror, "a") == "1"
    assert queue.cursors[1] == {"taken": 2}


def test_a_retried_record_does_not_replace_the_value_of_a_later_one(tmp_path: Path) -> None:
    queue = Queue(["a;1", "b;1", "b;2;kg", "c;1"])
    with opened(tmp_path, QueueConnector(queue, replayable=False), STRICT) as (mirror, reader):
        reader.read_pass()
        queue.messages.append("a;9;kg")
        reader.read_pass()
        assert [at for at, _ in rejected(mirror)] == [1, 2, 4]
        retry(mirror, reader)
    with opened(tmp_path, QueueConnector(queue, replayable=False), LAX) as (mirror, reader):
        reader.read_pass()
        assert rejected(mirror) == []
        assert [value(mirror, key) for key in "abc"] == ["9", "2", "1"]


def test_an_equal_value_of_a_later_message_counts_as_later(tmp_path: Path) -> None:
    queue = Queue(["a;1;kg", "a;2"])
    with opened(tmp_path, QueueConnector(queue, replayable=False), STRICT) as (mirror, reader):
        reader.read_pass()
        queue.messages.append("a;1;kg")
        reader.read_pass()
        retry(mirror, reader)
    with opened(tmp_path, QueueConnector(queue, replayable=False), LAX) as (mirror, reader):
        reader.read_pass()
        assert (value(mirror, "a"), rejected(mirror)) == ("1", [])


def test_a_retried_record_stays_rejected_if_it_may_be_older_than_a_record_of_its_reading(tmp_path: Path) -> None:
    queue = Queue(["a;1;kg", "a;2", "b;3"])
    with opened(tmp_path, QueueConnector(queue, replayable=False, has_order=False), STRICT) as (mirror, reader):
        reader.read_pass()
        retry(mirror, reader)
    with opened(tmp_path, QueueConnector(queue, replayable=False, has_order=False), LAX) as (mirror, reader):
        reader.read_pass()
        ((position, reason),) = rejected(mirror)
        assert (position, reason.partition(",")[0]) == (
            "message 2", "Another record of the same reading wrote the key 'a'",
        )  # fmt: skip
        assert [value(mirror, key) for key in "ab"] == ["1", "3"]


def test_a_retried_conflict_stays_one_rejection_and_keeps_its_value(tmp_path: Path) -> None:
    queue = Queue(["a;2", "b;3"])
    with opened(tmp_path, QueueConnector(queue, replayable=False), LAX) as (mirror, reader):
        mirror.intake.activate(["desires", "pipe"])
        desire_all(mirror, SINK, {"a": ("1", "string")})
        reader.read_pass()
        before = rejected(mirror)
        retry(mirror, reader)
        reader.read_pass()
        assert ([at for at, _ in before], rejected(mirror)) == ([1], before)
        mirror.intake.activate(["pipe"])
        assert ([value(mirror, key) for key in "ab"], rejected(mirror)) == (["2", "3"], [])


def test_the_children_of_a_stored_record_are_mapped_with_it(tmp_path: Path) -> None:
    queue = Queue(['A1;[{"n": "1"}, {"n": "2", "m": "2"}, {"n": "3"}];kg', "A2;[];kg"])
    strict, lax = (
        Mapping([EntrySpec(key=key, value="{n}", each=("mass",))]) for key in ("{parent.part}.{m}", "{parent.part}.{n}")
    )
    with opened(tmp_path, QueueConnector(queue, replayable=False), strict) as (mirror, reader):
        reader.read_pass()
        assert [at for at, _ in rejected(mirror)] == ["row 1, at mass[1]", "row 1, at mass[3]"]
        assert value(mirror, "A1.2") == "2"
        retry(mirror, reader)
    with opened(tmp_path, QueueConnector(queue, replayable=False), lax) as (mirror, reader):
        reader.read_pass()
        assert rejected(mirror) == []
        assert [value(mirror, f"A1.{n}") for n in "123"] == ["1", "2", "3"]


def log_reader(base: Path) -> LogConnector:
    context = SourceContext(pipeline="pipe", base=base, now=lambda: 0.0)
    return LogConnector(LogOptions.model_validate({"path": "bench"}), context)


def scene_of_log(base: Path, *lines: str) -> Path:
    log = base / "bench" / "run.csv"
    log.parent.mkdir()
    log.write_text("".join(f"{line}\n" for line in ("part,mass,unit", *lines)), encoding="utf-8")
    return log


@pytest.mark.parametrize("bad", ["b,2,", "b,2,kg,too,many"])
def test_a_rejected_line_of_a_rotated_file_that_is_gone_is_not_lost_by_a_retry_nor_a_restart(
    tmp_path: Path, bad: str
) -> None:
    log = scene_of_log(tmp_path, "a,1,kg", bad, "c,3,kg")
    with opened(tmp_path, log_reader(tmp_path), STRICT) as (mirror, reader):
        reader.read_pass()
        before = rejected(mirror)
        assert len(before) == 1
        log.rename(log.with_name("run.csv.1"))
        log.write_text("part,mass,unit\nd,4,kg\n", encoding="utf-8")
        reader.read_pass()
        log.with_name("run.csv.1").unlink()
        retry(mirror, reader)
        reader.read_pass()
        reader.read_pass()
        assert rejected(mirror) == before
        retry(mirror, reader)
    with opened(tmp_path, log_reader(tmp_path), STRICT) as (mirror, reader):
        reader.read_pass()
        assert rejected(mirror) == before
        retry(mirror, reader)
    with opened(tmp_path, log_reader(tmp_path), LAX) as (mirror, reader):
        reader.read_pass()
        is_readable = bad == "b,2,"
        assert (value(mirror, "b"), rejected(mirror)) == (("2", []) if is_readable else (None, before))


def test_a_corrected_mapping_and_a_retry_clear_the_rejections_of_a_log_that_is_complete(tmp_path: Path) -> None:
    scene_of_log(tmp_path, "a,1,kg", "b,2,", "c,3,kg")
    with opened(tmp_path, log_reader(tmp_path), STRICT) as (mirror, reader):
        reader.read_pass()
        retry(mirror, reader)
    with opened(tmp_path, log_reader(tmp_path), LAX) as (mirror, reader):
        reader.read_pass()
        assert (value(mirror, "b"), rejected(mirror)) == ("2", [])
