"""A failing part is logged once with its traceback, stored for `status`, and restarted; a lost state file ends the process."""

from __future__ import annotations

import pytest

from ingestd.core.errors import MirrorCorrupt, MirrorFull
from ingestd.daemon.part_supervisor import PartSupervisor
from ingestd.mirror.reports import FailedPart
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import PartFailed, PartRecovered
from tests.support.supervised_parts import FailedParts


class Store(FailedParts):
    def __init__(self, *, full: bool = False) -> None:
        super().__init__()
        self.full = full
        self.records = 0

    def record(self, failed: FailedPart) -> None:
        self.records += 1
        if self.full:
            raise MirrorFull("the disk is full")
        super().record(failed)


async def run_supervised(errors: list[Exception], store: Store) -> list[Event]:
    events: list[Event] = []
    seen: list[int] = []

    async def part() -> None:
        seen.append(len(store.failed))
        if errors:
            raise errors.pop(0)

    # A random number of 0 and failures of at most one second keep the test short: half of the first wait is fixed.
    supervise = PartSupervisor(store, emit=events.append, now=lambda: 100.0, random=lambda: 0.0)
    await supervise("intake mass-budget", part)
    return events


async def test_a_failure_is_stored_until_the_part_has_recovered() -> None:
    store = Store()
    events = await run_supervised([ValueError("bad page")], store)
    (failed, recovered) = events
    assert isinstance(failed, PartFailed)
    assert (failed.part, failed.sentence) == ("intake mass-budget", "ValueError: bad page")
    assert "Traceback" in failed.traceback
    assert isinstance(recovered, PartRecovered)
    assert store.records == 1
    assert not store.failed


async def test_a_full_disk_is_handled_as_any_failure_and_needs_no_space() -> None:
    store = Store(full=True)
    events = await run_supervised([MirrorFull("the disk is full")], store)
    assert [type(event) for event in events] == [PartFailed, PartRecovered]


async def test_an_unusable_state_file_ends_the_process_also_from_within_a_group() -> None:
    with pytest.raises(ExceptionGroup):
        await run_supervised([ExceptionGroup("lane", [ValueError("x"), MirrorCorrupt("damaged")])], Store())
