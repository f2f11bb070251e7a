"""The progress of `ingestd sync` on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ingestd.cli.progress import event_line
from ingestd.core.phrases import counted
from ingestd.process.terminal_text import safe_line
from ingestd.telemetry import Emit, Event, log_event
from ingestd.telemetry.catalogue.delivery import EntriesDelivered, EntriesParked, SinkAdopted
from ingestd.telemetry.catalogue.intake import PartitionRead


@contextmanager
def live_display() -> Iterator[Emit]:
    """Yield an `Emit` that prints events above progress bars."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(), transient=True) as display:
        yield _LiveDisplay(display)


class _LiveDisplay:
    """Prints events above two progress bars: one for reading, one for delivery."""

    def __init__(self, display: Progress) -> None:
        self._display = display
        self._reading = display.add_task("reading", total=None, count="")
        self._delivering = display.add_task("delivering", total=None, count="")
        self._records = self._changed = self._arrived = 0

    def __call__(self, event: Event) -> None:
        line = event_line(event)
        if line:
            self._display.console.print(safe_line(line), markup=False, highlight=False)
        match event:
            case PartitionRead():
                self._records += event.records
                self._changed += event.created + event.updated + event.removed
                self._display.update(
                    self._reading, count=f"{counted(self._records, 'record')}, {counted(self._changed, 'change')}"
                )
            case EntriesDelivered() | EntriesParked():
                self._arrived += event.entries
            case SinkAdopted():
                self._arrived += event.settled
        # Entries from before this sync, or of a file that is still being read, are in no total.
        total = self._changed if self._arrived <= self._changed else None
        self._display.update(
            self._delivering, completed=self._arrived, total=total, count=counted(self._arrived, "entry")
        )
        if event.level in {"warning", "error"}:
            log_event(event)
