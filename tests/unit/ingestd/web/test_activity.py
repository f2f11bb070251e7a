"""The work of the last 24 hours that the pages show."""

from __future__ import annotations

from ingestd.telemetry.catalogue.delivery import EntriesDelivered
from ingestd.telemetry.catalogue.intake import PartitionRead, PartitionUnchanged
from ingestd.web.event_counts import PERIOD_SECONDS, PERIODS, EventCounts


def delivered(sink: str, entries: int) -> EntriesDelivered:
    return EntriesDelivered(sink=sink, entries=entries, operation="mass", milliseconds=1.0)


def test_work_is_counted_in_its_half_hour_and_forgotten_after_a_day() -> None:
    now = [10.0 * PERIOD_SECONDS]
    counts = EventCounts(lambda: now[0])
    counts.note(delivered("a", 3))
    counts.note(delivered("a", 4))
    counts.note(delivered("b", 1))
    assert list(counts.activity("p", "a").delivered) == [0] * (PERIODS - 1) + [7]
    now[0] += 2 * PERIOD_SECONDS
    counts.note(delivered("a", 5))
    assert list(counts.activity("p", "a").delivered)[-3:] == [7, 0, 5]
    assert list(counts.activity("p", "b").delivered)[-3:] == [1, 0, 0]
    assert list(counts.activity("p", "none").delivered) == [0] * PERIODS
    assert counts.activity("p", "a").hours == 1
    now[0] += PERIOD_SECONDS * PERIODS
    found = counts.activity("p", "a")
    assert (sum(found.delivered), found.hours) == (0, 24)


def test_a_reading_counts_its_records_rejections_and_changed_entries() -> None:
    counts = EventCounts(lambda: 0.0)
    counts.note(
        PartitionRead(
            pipeline="p", partition="a.csv", records=9, created=1, updated=2, unchanged=4, removed=3, rejected=2,
            valueless=0, seconds=1.0, map_seconds=0.1, store_seconds=0.1,
        )
    )  # fmt: skip
    counts.note(PartitionUnchanged(pipeline="p", partition="a.csv", records=9, seconds=1.0))
    found = counts.activity("p", "a")
    assert (sum(found.records), sum(found.rejected), sum(found.entries), sum(found.delivered)) == (18, 2, 6, 0)
    assert sum(counts.activity("other", "a").records) == 0


def test_what_is_kept_of_a_sink_does_not_grow() -> None:
    now = [0.0]
    counts = EventCounts(lambda: now[0])
    for period in range(10 * PERIODS):
        now[0] = float(PERIOD_SECONDS * period)
        counts.note(delivered("a", 1))
    assert len(counts._by_period["delivered", "a"]) == PERIODS
    assert sum(counts.activity("p", "a").delivered) == PERIODS
