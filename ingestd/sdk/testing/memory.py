"""The memory suite: a reading of ten times as many records must not need more memory.

Each reading runs in a separate process, and the peak resident set of this process is measured, with the memory of libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ingestd.sdk.plugins import load_connector
from ingestd.sdk.testing.child_reader import read_in_child
from ingestd.sdk.testing.source_reader import check

_TIMES = 10
_PART = 4
"""Divisor: a reading may need a quarter of the added records' size more, because caches of allocators differ by a few MiB."""
_LEAST_BYTES = 32 * 2**20
"""The least size of the added records. Compared with this size, the differences of the caches are small."""


class MemoryRig(ABC):
    """A real source with a small and a large size. The large source has ten times as many records.

    ``records``: the number of records in the small source; it must be several batches. ``record_bytes``: the size of a record.
    """

    records: ClassVar[int] = 4_000
    record_bytes: ClassVar[int] = 1_000

    @abstractmethod
    def source(self) -> Mapping[str, Any]:
        """Return the settings of the source, with ``connector``; paths are absolute."""

    @abstractmethod
    def fill(self, records: int) -> None:
        """Make the source contain exactly this number of records."""


class MemoryConformance:
    """Subclass this class in a test module and define a fixture ``rig``; pytest runs the test."""

    def test_memory_does_not_grow_with_the_source(self, rig: MemoryRig, tmp_path: Path) -> None:
        """A growing source must not exhaust the daemon's memory. `Connector.memory_grows` declares an exception."""
        reason = load_connector(rig.source()["connector"]).memory_grows
        if reason:
            check(reason.endswith(".") and reason.count(" ") > 2, f"memory_grows is not a sentence: {reason!r}.")
            return
        added = (_TIMES - 1) * rig.records * rig.record_bytes
        check(added >= _LEAST_BYTES, f"The rig adds {added} bytes; it must add {_LEAST_BYTES} for a reliable result.")
        peaks: list[int] = []
        for records in (rig.records, _TIMES * rig.records):
            rig.fill(records)
            reading = read_in_child(rig.source(), tmp_path)
            check(reading.records == records, f"Of {records} records, {reading.records} are read.")
            peaks.append(reading.peak_bytes)
        grown = peaks[1] - peaks[0]
        check(
            grown < added // _PART,
            f"A reading of {added >> 20} MiB more needs {grown >> 20} MiB more memory. Yield smaller batches and keep no "
            "records, or state the reason in Connector.memory_grows.",
        )
