"""A partition that is read often is a line a minute in the log."""

from __future__ import annotations

from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import PartitionAcknowledged, PartitionRead, PartitionReadings, SourceAway
from ingestd.telemetry.summed_readings import OFTEN, SummedReadings, summed_readings


class Log:
    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[Event] = []
        self.emit = SummedReadings(self.lines.append, clock=lambda: self.now)

    def read(self, count: int, *, seconds: float = 0.25, partition: str = "line") -> None:
        for _ in range(count):
            self.now += seconds
            self.emit(
                PartitionRead(
                    pipeline="p", partition=partition, records=2, created=0, updated=1, unchanged=1, removed=0, rejected=0,
                    valueless=0, seconds=0.1, map_seconds=0.0, store_seconds=0.0,
                )
            )  # fmt: skip
            self.emit(PartitionAcknowledged(pipeline="p", partition=partition))


def sums(lines: list[Event]) -> list[PartitionReadings]:
    return [one for one in lines if isinstance(one, PartitionReadings)]


def test_frequent_readings_are_a_line_a_minute_and_no_reading_is_missing() -> None:
    log = Log()
    log.read(4 * 3600)  # an hour
    log.emit.flush(all_sums=True)
    assert len(log.lines) <= 2 * OFTEN + 61
    alone = sum(isinstance(one, PartitionRead) for one in log.lines)
    assert alone == OFTEN
    found = sums(log.lines)
    assert sum(one.readings for one in found) + alone == 4 * 3600
    assert sum(one.updated for one in found) + alone == 4 * 3600
    assert sum(one.acknowledged for one in found) == 4 * 3600 - OFTEN


def test_rare_readings_and_other_events_have_their_own_lines() -> None:
    log = Log()
    log.read(20, seconds=30.0)
    log.emit(SourceAway(pipeline="p", sentence="It is away.", retry_in_seconds=1.0))
    assert len(log.lines) == 41
    assert not sums(log.lines)


def test_a_partition_that_becomes_quiet_has_its_own_lines_again() -> None:
    log = Log()
    log.read(100)
    log.now += 60
    log.emit.flush()
    (line,) = sums(log.lines)
    assert line.readings == 100 - OFTEN
    log.now += 60
    log.emit.flush()
    before = len(log.lines)
    log.read(1)
    assert len(log.lines) == before + 2


def test_many_partitions_need_no_memory() -> None:
    log = Log()
    for number in range(3000):
        log.read(1, partition=f"file-{number}")
    assert len(log.lines) == 6000
    assert len(log.emit._minutes) <= 1001


def test_the_end_of_the_daemon_logs_what_is_left() -> None:
    lines: list[Event] = []
    with summed_readings(lines.append) as emit:
        for _ in range(OFTEN + 3):
            emit(
                PartitionRead(
                    pipeline="p", partition="line", records=1, created=1, updated=0, unchanged=0, removed=0, rejected=0,
                    valueless=0, seconds=0.1, map_seconds=0.0, store_seconds=0.0,
                )
            )  # fmt: skip
    (line,) = sums(lines)
    assert line.readings == 3
