"""The deliveries by minute that the page draws as a line."""

from __future__ import annotations

from ingestd.telemetry.catalogue.delivery import EntriesDelivered
from ingestd.web.event_counts import THROUGHPUT_MINUTES, EventCounts


def delivered(sink: str, entries: int) -> EntriesDelivered:
    return EntriesDelivered(sink=sink, entries=entries, operation="mass", milliseconds=1.0)


def test_deliveries_are_counted_in_their_minute_and_forgotten_after_the_last_one() -> None:
    now = [6_000.0]
    counts = EventCounts(lambda: now[0])
    counts.note(delivered("a", 3))
    counts.note(delivered("a", 4))
    counts.note(delivered("b", 1))
    assert list(counts.throughput("a")) == [0] * (THROUGHPUT_MINUTES - 1) + [7]
    now[0] += 120
    counts.note(delivered("a", 5))
    assert list(counts.throughput("a"))[-3:] == [7, 0, 5]
    assert list(counts.throughput("b"))[-3:] == [1, 0, 0]
    assert list(counts.throughput("none")) == [0] * THROUGHPUT_MINUTES
    now[0] += 60 * THROUGHPUT_MINUTES
    assert sum(counts.throughput("a")) == 0


def test_what_is_kept_of_a_sink_does_not_grow() -> None:
    now = [0.0]
    counts = EventCounts(lambda: now[0])
    for minute in range(10 * THROUGHPUT_MINUTES):
        now[0] = 60.0 * minute
        counts.note(delivered("a", 1))
    assert len(counts._by_minute["a"]) == THROUGHPUT_MINUTES
    assert sum(counts.throughput("a")) == THROUGHPUT_MINUTES
