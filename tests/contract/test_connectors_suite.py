"""The conformance suite finds each fault of a connector by the test of the promise that the fault breaks."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from pydantic import BaseModel

from ingestd.sdk import (
    Acknowledgement,
    Batch,
    Connector,
    Cursor,
    Partition,
    RecordUnreadable,
    SourceBroken,
    SourceContext,
    SourceError,
    SourceUnavailable,
    pack,
)
from ingestd.sdk.testing import ConnectorConformance, Rig, source_checks


class ListOptions(BaseModel):
    """The source is a list in memory; ``fault`` names the injected fault."""

    fault: str = ""


class ListConnector(Connector):
    """Reads a list as one snapshot in two batches; the cursor is the list. An empty row is unreadable."""

    Options: ClassVar[type[BaseModel]] = ListOptions
    rows: list[dict[str, str | None]]
    started = 0

    def partitions(self) -> Iterable[Partition]:
        ListConnector.started += 1
        name = f"list {ListConnector.started}" if self.options.fault == "names" else "list"
        return [Partition(name=name)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch | RecordUnreadable]:  # noqa: ARG002 - one partition
        fault = self.options.fault
        self._begin(fault, cursor)
        whole: Mapping[str, Any] = {"rows": [dict(row) for row in self.rows]}
        read_before = cursor == whole if fault != "JSON" else cursor is not None
        if (read_before and fault != "repeats") or (fault == "deaf" and cursor is not None):
            return
        half = len(self.rows) // 2
        last = whole if fault != "JSON" else {"rows": tuple(self.rows)}
        for part, start, end in ((self.rows[:half], 1, False), (self.rows[half:], half + 1, True)):
            first = 1 if fault == "positions" else start
            if fault == "early" and not end:
                cursor_here: Mapping[str, Any] = whole
            else:
                cursor_here = last if end else {"half": True}
            unreadable = [first + at for at, row in enumerate(part) if not row]
            for position in unreadable:
                error = RecordUnreadable(
                    "E43" if fault == "reason" else "The row has no fields.",
                    position=1 if fault == "reject position" else None if fault == "no position" else position,
                )
                if fault == "raised":
                    raise error
                if fault != "dropped":
                    yield error
            batch = pack(
                [row for row in part if row],
                cursor=cursor_here,
                positions=[first + at for at, row in enumerate(part) if row],
                last=end and fault != "endless",
            )
            if fault == "numbers":
                batch = Batch(
                    records=batch.records.with_columns(pl.lit(1).alias("n")),
                    positions=batch.positions,
                    cursor=batch.cursor,
                    last=batch.last,
                )
            yield batch

    def _begin(self, fault: str, cursor: Cursor | None) -> None:
        if fault == "broken":
            raise SourceBroken("E42")
        if fault == "secret":
            raise SourceUnavailable("The login of reader:hunter2 was refused.")
        if fault == "slow end":
            threading.Event().wait(0.6)  # a library that can't be interrupted
        rows: Any = (cursor or {}).get("rows", ())
        if fault == "future cursor":
            assert all(row["part"] for row in rows)

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: ARG002 - as above
        if self.options.fault == "acknowledge":
            self.rows.remove(self.rows[0])
            if len(self.rows) < 4:
                raise ValueError("archived already")

    def close(self) -> None:
        if self.options.fault == "close":
            del self.rows


class ListRig(Rig):
    secrets = ("hunter2",)

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.rows: list[dict[str, str | None]] = [{"part": f"P{n}", "mass": "0.10"} for n in range(5)]

    def connector(self) -> ListConnector:
        context = SourceContext(pipeline="t", base=Path(), now=lambda: 0.0)
        connector = ListConnector(ListOptions(fault=self.fault), context)
        connector.rows = self.rows
        return connector

    def add(self) -> None:
        self.rows.append({"part": "new", "mass": None})

    def change(self) -> None:
        self.rows[1] = {"part": "P1", "mass": "changed"}

    def remove(self) -> None:
        self.rows.pop()

    def add_unreadable(self) -> bool:
        self.rows.append({})
        return True

    def broken(self) -> ListConnector:
        connector = self.connector()
        connector.options = ListOptions(fault="broken")
        return connector


SENTENCE = "test_a_broken_source_raises_an_error_with_a_sentence"
"""The rig breaks this promise: "E42" is not a sentence."""


def test_a_connector_without_a_fault_passes() -> None:
    for name in vars(ConnectorConformance):
        if name.startswith("test_") and name != SENTENCE:
            getattr(ConnectorConformance(), name)(ListRig(""))


@pytest.mark.parametrize(
    ("fault", "promise", "sentence"),
    [
        ("", SENTENCE, "not a sentence: 'E42'"),
        ("names", "test_partitions_are_the_same_when_requested_again_and_after_a_restart", "returns something else"),
        ("numbers", "test_every_column_is_text_and_every_record_has_its_own_position", "are not text"),
        ("positions", "test_every_column_is_text_and_every_record_has_its_own_position", "have the same position"),
        ("endless", "test_only_the_last_batch_of_a_reading_is_marked_as_last", "is not marked as last"),
        ("repeats", "test_an_unchanged_source_yields_nothing_from_its_last_cursor", "is unchanged, but"),
        ("deaf", "test_added_and_changed_records_are_read_and_removed_ones_are_not", "yields nothing"),
        ("early", "test_a_reading_that_resumes_at_any_cursor_loses_nothing", "from the cursor of batch 1 yields"),
        ("JSON", "test_every_cursor_can_be_stored_as_json", "after it was stored as JSON"),
        ("acknowledge", "test_acknowledging_twice_is_harmless_also_after_a_restart", "archived already"),
        ("close", "test_closing_twice_is_harmless", "rows"),
        ("raised", "test_an_unreadable_record_is_rejected_and_the_others_are_read", "has no fields"),
        ("dropped", "test_an_unreadable_record_is_rejected_and_the_others_are_read", "but 0 are rejected"),
        ("reason", "test_an_unreadable_record_is_rejected_and_the_others_are_read", "not a sentence: 'E43'"),
        ("no position", "test_an_unreadable_record_is_rejected_and_the_others_are_read", "without its position"),
        ("reject position", "test_an_unreadable_record_is_rejected_and_the_others_are_read", "position of another, 1"),
        ("slow end", "test_a_reading_ends_soon", r"it must within 0\.2 seconds"),
        ("future cursor", "test_a_cursor_of_another_source_is_no_unforeseen_failure", "of a later version.*TypeError"),
        ("secret", "test_no_sentence_contains_a_secret", "contains a secret: 'The login of reader:… was refused.'"),
    ],
)
def test_a_fault_fails_the_test_of_its_promise(
    fault: str, promise: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_checks, "STOP_ATTEMPTS", 1)
    monkeypatch.setattr(source_checks, "STOP_SECONDS", 0.2)
    with pytest.raises((AssertionError, ValueError, AttributeError, SourceError), match=sentence):
        getattr(ConnectorConformance(), promise)(ListRig(fault))
