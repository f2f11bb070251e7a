"""The conformance suite of connectors: what the daemon relies on, one promise a test."""

from __future__ import annotations

import json

import polars as pl

from ingestd.core.errors import SourceError
from ingestd.sdk.connector import Verifies
from ingestd.sdk.testing.rig import Rig
from ingestd.sdk.testing.settlements import settlement
from ingestd.sdk.testing.source_reader import check, partitions_of, read, records_of, skip


class ConnectorConformance:
    """Subclass it in a test module and give it a fixture ``rig``; pytest runs the rest."""

    def test_partitions_are_the_same_when_asked_again_and_after_a_restart(self, rig: Rig) -> None:
        """Partitions are what cursors belong to, so their names must last."""
        connector = rig.connector()
        first = partitions_of(connector)
        check(len({partition.name for partition in first}) == len(first), "Two partitions have one name.")
        check(partitions_of(connector) == first, "partitions() differs when it is asked again.")
        check(partitions_of(rig.connector()) == first, "partitions() differs after a restart.")

    def test_every_column_is_text_and_every_record_has_a_place_of_its_own(self, rig: Rig) -> None:
        """The mapping works on text alone, and a position is how a person finds the record."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            batches = read(connector, partition)
            places = [place for batch in batches for place in batch.positions]
            check(len(set(places)) == len(places), f"Two records of {partition.name} have one position.")
            for batch in batches:
                kinds = {name: kind for name, kind in batch.records.schema.items() if kind != pl.String}
                check(not kinds, f"Columns of {partition.name} are no text: {kinds}.")
                kind = batch.positions.dtype
                check(kind in {pl.Int64, pl.String}, f"Positions are {kind}; they are Int64 or String.")
                check(len(batch.positions) == batch.records.height, "There are not as many positions as records.")
                check(all(isinstance(fact, str) for fact in batch.facts.values()), "A fact is no text.")

    def test_a_snapshot_says_once_and_at_its_end_that_it_is_whole(self, rig: Rig) -> None:
        """What is missing from a snapshot has vanished, so its end must be certain."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            marks = [batch.last for batch in read(connector, partition)]
            check(True not in marks[:-1], f"A batch of {partition.name} before the last one says that it is the last.")
            if partition.snapshot:
                check(marks, f"The snapshot {partition.name} was never read and yet gives no batch.")
                check(marks[-1:] == [True], f"The last batch of the snapshot {partition.name} does not say so.")

    def test_two_readings_of_an_unchanged_source_are_equal(self, rig: Rig) -> None:
        """A reading is repeated after a crash; it must not tell something else then."""
        first, second = rig.connector(), rig.connector()
        for partition in partitions_of(first):
            same = records_of(read(first, partition)) == records_of(read(second, partition))
            check(same, f"Two readings of {partition.name} differ although nothing changed.")

    def test_an_unchanged_source_gives_nothing_from_its_last_cursor(self, rig: Rig) -> None:
        """Also after a restart, and with the cursor as it comes out of JSON."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            cursor = read(connector, partition)[-1].cursor
            for again in (connector, rig.connector()):
                batches = read(again, partition, cursor)
                if rig.unchanged_yields_nothing or not partition.snapshot:
                    check(not batches, f"{partition.name} is unchanged and yet gives {len(batches)} batches.")
                else:
                    check(batches[-1].last, f"{partition.name} can't tell a change, so it must be read whole.")

    def test_a_reading_taken_up_at_any_cursor_loses_nothing(self, rig: Rig) -> None:
        """A partition that follows goes on exactly there; a snapshot that was not read to its end is read whole."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            batches = read(connector, partition)
            whole = records_of(batches)
            for at, batch in enumerate(batches[:-1]):
                rest = records_of(read(rig.connector(), partition, batch.cursor))
                wanted = whole if partition.snapshot else records_of(batches[at + 1 :])
                check(rest == wanted, f"Reading {partition.name} from the cursor of batch {at + 1} gives {rest}.")

    def test_every_cursor_survives_json(self, rig: Rig) -> None:
        """The daemon keeps cursors as JSON."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            for batch in read(connector, partition):
                back = json.loads(json.dumps(batch.cursor))
                check(back == dict(batch.cursor), f"The cursor {batch.cursor} comes back from JSON as {back}.")

    def test_what_is_added_and_changed_is_read_and_what_is_removed_is_not(self, rig: Rig) -> None:
        """From the last cursor on; a snapshot is whole again, a partition that follows tells what is new."""
        connector = rig.connector()
        (partition, *_) = partitions_of(connector)
        batches = read(connector, partition)
        known = records_of(batches)
        for act, words in ((rig.add, "added"), (rig.change, "changed")):
            act()
            news = read(connector, partition, batches[-1].cursor)
            check(news, f"A record was {words} and {partition.name} gives nothing.")
            found = [fields for _, fields in records_of(news)]
            check([f for f in found if f not in [old for _, old in known]], f"The record that was {words} is missing.")
            batches, known = news, known + records_of(news)
        if partition.snapshot:
            before = len(records_of(batches))
            rig.remove()
            after = len(records_of(read(connector, partition, batches[-1].cursor)))
            check(after == before - 1, f"A record was removed; {partition.name} had {before} records and has {after}.")

    def test_settling_twice_is_harmless_also_after_a_restart(self, rig: Rig) -> None:
        """After a crash ``settled`` is called again."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            cursor = json.loads(json.dumps(read(connector, partition)[-1].cursor))
            connector.settled(partition, cursor, settlement())
            connector.settled(partition, cursor, settlement())
            rig.connector().settled(partition, cursor, settlement())

    def test_a_reading_that_is_given_up_leaves_the_source_readable(self, rig: Rig) -> None:
        """The daemon stops in the middle of a reading when it is told to."""
        connector = rig.connector()
        for partition in partitions_of(connector):
            given_up = iter(connector.read(partition, None))
            next(given_up)
            close = getattr(given_up, "close", None)
            if close is not None:
                close()
            check(
                records_of(read(connector, partition)), f"After a reading was given up {partition.name} gives nothing."
            )

    def test_a_source_that_fails_says_so_in_a_sentence(self, rig: Rig) -> None:
        """Only a `SourceError` tells the daemon what to do, and only a sentence tells a person."""
        connector = rig.broken()
        if connector is None:
            skip("this rig's source can't be broken")
        sentence = ""
        try:
            for partition in connector.partitions():
                read(connector, partition)
        except SourceError as error:
            sentence = str(error)
        check(sentence, "A broken source was read without an error.")
        check(sentence.endswith((".", "?", "!")) and sentence.count(" ") > 2, f"This is no sentence: {sentence!r}.")

    def test_closing_twice_is_harmless(self, rig: Rig) -> None:
        """Also before and after a reading."""
        connector = rig.connector()
        connector.close()
        connector = rig.connector()
        for partition in partitions_of(connector):
            read(connector, partition)
        connector.close()
        connector.close()

    def test_verify_names_its_steps_and_says_a_sentence_to_each(self, rig: Rig) -> None:
        """`ingestd check` prints them as they are."""
        opened: list[object] = [rig.connector(), rig.broken()]
        for connector in opened:
            if not isinstance(connector, Verifies):
                continue
            steps = list(connector.verify())
            check(steps, "verify() checks nothing.")
            check(len({step.name for step in steps}) == len(steps), "Two steps of verify() have one name.")
            check(all(step.sentence.endswith(".") for step in steps), f"A step says no sentence: {steps}.")
