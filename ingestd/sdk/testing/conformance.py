"""The conformance suite for connectors: one test for each guarantee that the daemon relies on."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import ClassVar

import polars as pl

from ingestd.core.errors import SourceError
from ingestd.sdk.connector import Connector, Verifies
from ingestd.sdk.testing.source_checks import (
    FOREIGN_CURSORS,
    check_accepts,
    check_ends_in_time,
    check_no_secret,
    end_while_it_reads,
    future_cursors,
    sentences_of,
)
from ingestd.sdk.testing.source_reader import (
    acknowledgement,
    check,
    partitions_of,
    read,
    read_next,
    records_of,
    rejects_of,
    skip,
)


class Rig(ABC):
    """A real source, which has at least three records at first, preferably in several batches.

    ``unchanged_yields_nothing``: a reading from the last cursor of an unchanged source yields nothing. False for a snapshot
    of a source that cannot report changes, such as a table. It must stay True for an incremental source.
    """

    unchanged_yields_nothing: ClassVar[bool] = True
    secrets: ClassVar[tuple[str, ...]] = ()
    """Secret texts of the options, which no sentence of the connector may contain."""

    @abstractmethod
    def connector(self) -> Connector:
        """Return a new connector for the same source, as after a restart of the daemon."""

    @abstractmethod
    def add(self) -> None:
        """Add a record at the end of the source."""

    @abstractmethod
    def change(self) -> None:
        """Change a value of an existing record."""

    @abstractmethod
    def remove(self) -> None:
        """Remove a record."""

    def add_unreadable(self) -> bool:
        """Add an unreadable record at the end of the source. Return False if no record can be unreadable."""
        return False

    def broken(self) -> Connector | None:
        """Return a connector of a source that can't be read; None if the source can't be broken."""
        return None


class ConnectorConformance:
    """Subclass this class in a test module and define a fixture ``rig``; pytest runs the tests."""

    def test_partitions_are_the_same_when_requested_again_and_after_a_restart(self, rig: Rig) -> None:
        """Cursors belong to partitions, so the names of partitions must be stable."""
        connector = rig.connector()
        first = partitions_of(connector)
        check(len({partition.name for partition in first}) == len(first), "Two partitions have the same name.")
        check(partitions_of(connector) == first, "The second call of partitions() returns something else.")
        check(partitions_of(rig.connector()) == first, "partitions() returns something else after a restart.")

    def test_every_column_is_text_and_every_record_has_its_own_position(self, rig: Rig) -> None:
        """The mapping works on text only, and people find a record by its position."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            batches = read(connector, partition)
            positions = [position for batch in batches for position in batch.positions]
            check(len(set(positions)) == len(positions), f"Two records of {partition.name} have the same position.")
            for batch in batches:
                types = {name: type_ for name, type_ in batch.records.schema.items() if type_ != pl.String}
                check(not types, f"Columns of {partition.name} are not text: {types}.")
                type_ = batch.positions.dtype
                check(type_ in {pl.Int64, pl.String}, f"The type of the positions is {type_}, not Int64 or String.")
                check(len(batch.positions) == batch.records.height, "The numbers of positions and records differ.")
                check(all(isinstance(fact, str) for fact in batch.facts.values()), "A fact is not text.")

    def test_only_the_last_batch_of_a_reading_is_marked_as_last(self, rig: Rig) -> None:
        """The end of a reading must be certain. Without this mark, the daemon records the reading as interrupted."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            marks = [batch.last for batch in read(connector, partition)]
            check(True not in marks[:-1], f"A batch of {partition.name} before the last one is marked as last.")
            check(marks, f"{partition.name} was never read, but read() yields no batch.")
            check(marks[-1:] == [True], f"The last batch of {partition.name} is not marked as last.")

    def test_two_readings_of_an_unchanged_source_are_equal(self, rig: Rig) -> None:
        """A reading is repeated after a crash and must then yield the same records."""
        first, second = rig.connector(), rig.connector()
        for partition in partitions_of(first):
            same = records_of(read(first, partition)) == records_of(read(second, partition))
            check(same, f"Two readings of {partition.name} differ although nothing changed.")

    def test_an_unchanged_source_yields_nothing_from_its_last_cursor(self, rig: Rig) -> None:
        """This also holds after a restart, and with a cursor that was stored as JSON."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            cursor = read(connector, partition)[-1].cursor
            for again in (connector, rig.connector()):
                batches = read(again, partition, cursor)
                if rig.unchanged_yields_nothing or not partition.snapshot:
                    check(not batches, f"{partition.name} is unchanged, but read() yields {len(batches)} batches.")
                else:
                    check(batches[-1].last, f"{partition.name} cannot report changes, so it must be read as a whole.")

    def test_a_reading_that_resumes_at_any_cursor_loses_nothing(self, rig: Rig) -> None:
        """An incremental partition resumes at the cursor; a snapshot that was not read to its end is read completely again."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            batches = read(connector, partition)
            all_records = records_of(batches)
            for number, batch in enumerate(batches[:-1], start=1):
                found = records_of(read(rig.connector(), partition, batch.cursor))
                expected = all_records if partition.snapshot else records_of(batches[number:])
                check(found == expected, f"Reading {partition.name} from the cursor of batch {number} yields {found}.")

    def test_every_cursor_can_be_stored_as_json(self, rig: Rig) -> None:
        """The daemon stores cursors as JSON."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            for batch in read(connector, partition):
                stored = json.loads(json.dumps(batch.cursor))
                check(
                    stored == dict(batch.cursor), f"The cursor {batch.cursor} is {stored} after it was stored as JSON."
                )

    def test_added_and_changed_records_are_read_and_removed_ones_are_not(self, rig: Rig) -> None:
        """A reading from the last cursor yields the complete snapshot, or the new records of an incremental partition."""
        connector = rig.connector()
        (partition, *_) = partitions_of(connector)
        batches = read(connector, partition)
        known = records_of(batches)
        for change, verb in ((rig.add, "added"), (rig.change, "changed")):
            change()
            later = read_next(connector, partition, batches[-1].cursor)
            check(later, f"A record was {verb}, but a reading of {partition.name} yields nothing.")
            found = [fields for _, fields in records_of(later)]
            check([f for f in found if f not in [old for _, old in known]], f"The record that was {verb} is missing.")
            batches, known = later, known + records_of(later)
        if partition.snapshot:
            before = len(records_of(batches))
            rig.remove()
            after = len(records_of(read_next(connector, partition, batches[-1].cursor)))
            check(after == before - 1, f"A record was removed; {partition.name} had {before} records and has {after}.")

    def test_an_unreadable_record_is_rejected_and_the_others_are_read(self, rig: Rig) -> None:
        """One bad record must not stop its source, and people must be able to find it."""
        connector = rig.connector()
        (partition, *_) = partitions_of(connector)
        before = read(connector, partition)
        if not rig.add_unreadable():
            return
        rejects = rejects_of(read_next(connector, partition, before[-1].cursor))
        check(len(rejects) == 1, f"One record is unreadable, but {len(rejects)} are rejected.")
        reason = rejects[0].reason
        check(reason.endswith((".", "?", "!")) and reason.count(" ") > 2, f"The reason is not a sentence: {reason!r}.")
        rig.add()
        batches = read(rig.connector(), partition)
        records = records_of(batches)
        check(len(records) == len(records_of(before)) + 1, f"With an unreadable record, {len(records)} are read.")
        positions = [str(reject.position) for reject in rejects_of(batches)]
        check(len(positions) == 1, "The unreadable record is not rejected by a second reading.")
        check(positions[0] not in dict(records), f"The rejected record has the position of another, {positions[0]}.")

    def test_acknowledging_twice_is_harmless_also_after_a_restart(self, rig: Rig) -> None:
        """After a crash, the daemon acknowledges a partition again."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            cursor = json.loads(json.dumps(read(connector, partition)[-1].cursor))
            connector.acknowledge(partition, cursor, acknowledgement())
            connector.acknowledge(partition, cursor, acknowledgement())
            rig.connector().acknowledge(partition, cursor, acknowledgement())

    def test_a_source_can_be_read_after_an_aborted_reading(self, rig: Rig) -> None:
        """The daemon may stop in the middle of a reading."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            aborted = iter(connector.read(partition, None))
            next(aborted)
            close = getattr(aborted, "close", None)
            if close is not None:
                close()
            found = records_of(read(connector, partition))
            check(found, f"A reading of {partition.name} after an aborted one yields nothing.")

    def test_a_broken_source_raises_an_error_with_a_sentence(self, rig: Rig) -> None:
        """The daemon acts by the class of `SourceError`, and people read its sentence."""
        connector = rig.broken()
        if connector is None:
            skip("this rig's source cannot be broken")
        sentence = ""
        try:
            for partition in connector.partitions():
                read(connector, partition)
        except SourceError as error:
            sentence = str(error)
        check(sentence, "A broken source was read without an error.")
        check(sentence.endswith((".", "?", "!")) and sentence.count(" ") > 2, f"This is not a sentence: {sentence!r}.")

    def test_closing_twice_is_harmless(self, rig: Rig) -> None:
        """This holds before and after a reading."""
        connector = rig.connector()
        connector.close()
        connector = rig.connector()
        for partition in partitions_of(connector):
            read(connector, partition)
        connector.close()
        connector.close()

    def test_verify_returns_named_steps_with_a_sentence_each(self, rig: Rig) -> None:
        """`ingestd check` prints the steps unchanged."""
        opened: list[object] = [rig.connector(), rig.broken()]
        for connector in opened:
            if not isinstance(connector, Verifies):
                continue
            steps = list(connector.verify())
            check(steps, "verify() returns no steps.")
            check(len({step.name for step in steps}) == len(steps), "Two steps of verify() have the same name.")
            check(all(step.sentence.endswith(".") for step in steps), f"A step has no sentence: {steps}.")

    def test_a_reading_ends_soon(self, rig: Rig) -> None:
        """The daemon stops within seconds, whatever a source waits for."""
        check_ends_in_time(lambda: end_while_it_reads(rig.connector()))

    def test_a_cursor_of_another_source_is_no_unforeseen_failure(self, rig: Rig) -> None:
        """The pipeline may have had another connector, or a newer version of this connector."""
        (partition, *_) = partitions_of(rig.connector())
        own = read(rig.connector(), partition)[-1].cursor
        for cursor in (*FOREIGN_CURSORS, *future_cursors(own)):
            connector = rig.connector()
            for known in partitions_of(connector):
                check_accepts(connector, known, cursor)

    def test_no_sentence_contains_a_secret(self, rig: Rig) -> None:
        """Logs and pages show the sentences of a connector."""
        for connector in (rig.connector(), rig.broken()):
            if connector is not None:
                check_no_secret(sentences_of(connector), rig.secrets)
