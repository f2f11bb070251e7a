"""The suite for sources that yield each record only once, such as queues: `Partition(replayable=False)`."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import ClassVar

from ingestd.core.record import Batch, Cursor
from ingestd.sdk.batches import attach_rejects
from ingestd.sdk.connector import Connector, Watches
from ingestd.sdk.testing.source_checks import (
    FOREIGN_CURSORS,
    check_accepts,
    check_ends_in_time,
    check_no_secret,
    end_while_it_reads,
    future_cursors,
    sentences_of,
)
from ingestd.sdk.testing.source_reader import check, partitions_of, records_of

_WAIT_SECONDS = 30.0


class ConsumeRig(ABC):
    """A real source, which has no messages at first. ``secrets``: texts that no sentence of the connector may contain."""

    secrets: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def connector(self) -> Connector:
        """Return a new connector for the same source, with the same kept files, as after a restart of the daemon."""

    @abstractmethod
    def send(self, number: int) -> None:
        """Send a message that becomes a record with the field ``number``. Must not wait until the message is read."""

    @abstractmethod
    def send_again(self) -> None:
        """Send again each message that the source has not released, as after a lost connection."""


class _Session:
    """Uses a connector as the runtime does: watches it, and reads it when it calls ``wake``."""

    def __init__(self, connector: Connector, stack: ExitStack) -> None:
        self.connector = connector
        self._woken = threading.Event()
        if isinstance(connector, Watches):
            stack.enter_context(connector.watch(self._woken.set))
        stack.callback(connector.close)

    def read(
        self, expected: int, cursor: Cursor | None = None, *, commit: bool = True
    ) -> tuple[list[Batch], Cursor | None]:
        """Read until ``expected`` records have arrived. Without ``commit``, end the reading as if the process was killed."""
        batches: list[Batch] = []
        while sum(batch.record_count for batch in batches) < expected:
            (partition, *_) = partitions_of(self.connector)
            reading = iter(attach_rejects(self.connector.read(partition, cursor)))
            is_ended: bool | None = None
            for batch in reading:
                check(not is_ended, f"A batch of {partition.name} before the last one is marked as last.")
                is_ended = batch.last
                batches.append(batch)
                if not commit:
                    return batches, cursor
                cursor = json.loads(json.dumps(batch.cursor))
                self.connector.committed(partition, batch.cursor)
            check(is_ended is not False, f"The last batch of {partition.name} is not marked as last.")
            if sum(batch.record_count for batch in batches) < expected:
                arrived = self._woken.wait(_WAIT_SECONDS)
                check(arrived, f"Of {expected} records, {records_of(batches)} arrived.")
                self._woken.clear()
        return batches, cursor


class ConsumeConformance:
    """Subclass this class in a test module and define a fixture ``rig``; pytest runs the tests."""

    def test_its_partitions_are_incremental_and_never_read_again(self, rig: ConsumeRig) -> None:
        """Otherwise a retry would read from the start, but the source no longer has its first messages."""
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            for partition in partitions_of(session.connector):
                check(not partition.snapshot, f"{partition.name} is a snapshot.")
                check(not partition.replayable, f"{partition.name} is replayable.")

    def test_messages_are_read_in_order_with_positions_that_only_grow(self, rig: ConsumeRig) -> None:
        """Positions show which of two records is newer."""
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            session.read(0)
            cursor: Cursor | None = None
            positions: list[int] = []
            for number in range(1, 4):
                _prepare(session, cursor)
                rig.send(number)
                batches, cursor = session.read(1, cursor)
                numbers = [fields["number"] for _, fields in records_of(batches)]
                check(numbers == [str(number)], f"Message {number} is read as {numbers}.")
                positions += [int(str(position)) for batch in batches for position in batch.positions]
            check(positions == sorted(set(positions)), f"The positions {positions} do not only grow.")

    def test_the_last_batch_of_a_reading_is_marked_as_last(self, rig: ConsumeRig) -> None:
        """Without this mark, the daemon records a reading as interrupted."""
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            _prepare(session, None)
            for number in range(1, 4):
                rig.send(number)
            session.read(3)

    def test_a_message_that_was_not_committed_is_read_again_by_the_next_process(self, rig: ConsumeRig) -> None:
        """A process may be killed between the batch and its commit."""
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            _prepare(session, None)
            rig.send(1)
            _, cursor = session.read(1)
            _prepare(session, cursor)
            rig.send(2)
            session.read(1, cursor, commit=False)
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            (partition, *_) = partitions_of(session.connector)
            batches = list(attach_rejects(session.connector.read(partition, cursor)))
            if not records_of(batches):  # some sources send a message again only to a new connection, such as this one
                rig.send_again()
                batches, _ = session.read(1, cursor)
            found = [fields["number"] for _, fields in records_of(batches)]
            check(found == ["2"], f"Message 2 was not committed, and 1 was; {found} are read.")

    def test_a_reading_ends_soon(self, rig: ConsumeRig) -> None:
        """The daemon stops within seconds, whatever a source waits for."""
        check_ends_in_time(lambda: end_while_it_reads(rig.connector()))

    def test_a_cursor_of_another_source_is_no_unforeseen_failure(self, rig: ConsumeRig) -> None:
        """The pipeline may have had another connector, or a newer version of this connector."""
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            _prepare(session, None)
            rig.send(1)
            _, own = session.read(1)
        for cursor in (*FOREIGN_CURSORS, *future_cursors(own or {})):
            with ExitStack() as stack:
                session = _Session(rig.connector(), stack)
                for partition in partitions_of(session.connector):
                    check_accepts(session.connector, partition, cursor)

    def test_no_sentence_contains_a_secret(self, rig: ConsumeRig) -> None:
        """Logs and pages show the sentences of a connector."""
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            check_no_secret(sentences_of(session.connector), rig.secrets)

    def test_closing_twice_is_harmless(self, rig: ConsumeRig) -> None:
        """A connector can be closed more than once."""
        with ExitStack() as stack:
            session = _Session(rig.connector(), stack)
            session.read(0)
            session.connector.close()
            session.connector.close()


def _prepare(session: _Session, cursor: Cursor | None) -> None:
    """Read once, so that the source accepts messages; fail if a message waits already."""
    for partition in partitions_of(session.connector):
        found = records_of(list(attach_rejects(session.connector.read(partition, cursor))))
        check(not found, f"Nothing was sent, but {found} are read.")
