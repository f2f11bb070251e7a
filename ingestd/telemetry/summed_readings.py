"""Sums the readings of partitions that are read often, and logs each sum once a minute.

A subscription is read at each change, up to four times a second. Without sums, the log would have two lines for each reading.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec

from ingestd.telemetry.catalogue.intake import PartitionAcknowledged, PartitionRead, PartitionReadings
from ingestd.telemetry.event import Emit, Event

SECONDS = 60.0
OFTEN = 10
"""After this number of readings in a minute, further readings are summed. If a minute has more than this number of readings,
all readings of the next minute are summed."""

_COUNTS = ("records", "created", "updated", "unchanged", "removed", "rejected", "valueless")
_PRUNED_ABOVE = 1000

_Key: TypeAlias = tuple[str, str]


class _Minute(msgspec.Struct):
    """The readings of a partition since ``began``. ``sums``: the sums of the readings that are not logged yet."""

    began: float
    is_often: bool = False
    readings: int = 0
    sums: Counter[str] = msgspec.field(default_factory=Counter)
    notice: str = ""


class SummedReadings:
    """Passes events on to ``log``, but sums the events of frequent readings in one event each minute. Thread-safe.

    ``clock``: monotonic seconds. `flush` logs the sums of minutes that have ended.
    """

    def __init__(self, log: Emit, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._guard = threading.Lock()
        self._minutes: dict[_Key, _Minute] = {}

    def __call__(self, event: Event) -> None:
        """Log an event, or add it to the sum of its partition."""
        if isinstance(event, PartitionRead | PartitionAcknowledged) and self._add(event):
            return
        self._log(event)

    def flush(self, *, all_sums: bool = False) -> None:
        """Log the sums of the minutes that have ended, or ``all_sums``."""
        with self._guard:
            ended = [
                (key, one) for key, one in self._minutes.items() if all_sums or self._clock() - one.began >= SECONDS
            ]
            lines = [line for key, one in ended for line in self._end(key, one)]
        for line in lines:
            self._log(line)

    def _add(self, event: PartitionRead | PartitionAcknowledged) -> bool:
        key = (event.pipeline, event.partition)
        with self._guard:
            one = self._minutes.get(key)
            lines = self._end(key, one) if one is not None and self._clock() - one.began >= SECONDS else []
            one = self._minutes.setdefault(key, _Minute(began=self._clock()))
            one.readings += isinstance(event, PartitionRead)
            is_summed = one.is_often or one.readings > OFTEN
            if is_summed and isinstance(event, PartitionRead):
                one.sums.update({name: getattr(event, name) for name in _COUNTS} | {"readings": 1})
                one.notice = event.notice or one.notice
            elif is_summed:
                one.sums["acknowledged"] += 1
            if len(self._minutes) > _PRUNED_ABOVE:  # a folder may have any number of files that are read once
                self._minutes = {key: one for key, one in self._minutes.items() if one.sums or one.is_often}
        for line in lines:
            self._log(line)
        return is_summed

    def _end(self, key: _Key, one: _Minute) -> list[PartitionReadings]:
        """End a minute and return its event, if it has summed readings."""
        if one.readings > OFTEN:
            self._minutes[key] = _Minute(began=self._clock(), is_often=True)
        else:
            del self._minutes[key]
        if not one.sums:
            return []
        numbers = {name: one.sums[name] for name in (*_COUNTS, "readings", "acknowledged")}
        return [PartitionReadings(pipeline=key[0], partition=key[1], notice=one.notice, **numbers)]


@contextmanager
def summed_readings(log: Emit) -> Iterator[Emit]:
    """Yield a `SummedReadings` for ``log``. A thread logs the sums each minute. When the context ends, all sums are logged."""
    summed = SummedReadings(log)
    ended = threading.Event()

    def flush() -> None:
        while not ended.wait(SECONDS):
            summed.flush()

    thread = threading.Thread(target=flush, name="sums of readings", daemon=True)
    thread.start()
    try:
        yield summed
    finally:
        ended.set()
        thread.join()
        summed.flush(all_sums=True)
