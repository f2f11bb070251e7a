"""The progress of `ingestd sync` and `ingestd plan`: a live display on a terminal; else, for a sync, a line for each event.

A full or closed output neither ends nor delays the sync.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ingestd.core.phrases import counted
from ingestd.daemon.reporting import describe_changes
from ingestd.process.line_queue import LineQueue
from ingestd.process.terminal_text import echo, safe_line
from ingestd.telemetry import Emit, Event, log_event
from ingestd.telemetry.catalogue.delivery import (
    DeliveryPaused,
    EntriesDelivered,
    EntriesRejected,
    SinkAdopted,
    SinkCreated,
)
from ingestd.telemetry.catalogue.intake import PartitionRead, PartitionRejected, RunHeld, SourceStopped

if TYPE_CHECKING:
    from rich.progress import Progress


_REPORTED = (DeliveryPaused, PartitionRejected, RunHeld, SourceStopped)
"""Events that are not logged, because the report at the end of a sync has their sentences."""


@contextmanager
def progress(*, terminal: bool) -> Iterator[Emit]:
    """Yield an `Emit` that prints events while the context is open. Other warnings and errors go to the log."""
    if not terminal:
        with _line_output() as write:
            yield lambda event: _print_line(event, write)
        return
    # Imported here, because most syncs have no terminal.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(), transient=True) as display:
        yield _LiveDisplay(display)


@contextmanager
def reading_progress(*, terminal: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that adds a number of records to a live display on standard error, or does nothing without a terminal.

    Standard output has only the result. The function may be called from any thread.
    """
    if not terminal:
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("reading: {task.completed} records"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        reading = display.add_task("", total=None)
        yield lambda records: display.advance(reading, records)


@contextmanager
def _line_output() -> Iterator[Callable[[str], object]]:
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # an in-memory stream never blocks
        yield echo
        return
    output = LineQueue(descriptor)
    try:
        yield output.write
    finally:
        output.finish(None)  # waits for a slow reader, so that later output follows these lines


def _print_line(event: Event, write: Callable[[str], object]) -> None:
    line = _event_line(event)
    if line:
        write(safe_line(line))
    _log(event)


def _log(event: Event) -> None:
    if event.level in {"warning", "error"} and not isinstance(event, _REPORTED):
        log_event(event)


class _LiveDisplay:
    """Prints events above two progress bars: one for reading, one for delivery."""

    def __init__(self, display: Progress) -> None:
        self._display = display
        self._reading = display.add_task("reading", total=None, count="")
        self._delivering = display.add_task("delivering", total=None, count="")
        self._records = self._changed = self._arrived = 0

    def __call__(self, event: Event) -> None:
        line = _event_line(event)
        if line:
            self._display.console.print(safe_line(line), markup=False, highlight=False)
        match event:
            case PartitionRead():
                self._records += event.records
                self._changed += event.created + event.updated + event.removed
                self._display.update(
                    self._reading, count=f"{counted(self._records, 'record')}, {counted(self._changed, 'change')}"
                )
            case EntriesDelivered() | EntriesRejected():
                self._arrived += event.entries
            case SinkAdopted():
                self._arrived += event.acknowledged
        # No total is known while entries of earlier runs, or of a file that is still being read, are delivered.
        total = self._changed if self._arrived <= self._changed else None
        self._display.update(
            self._delivering, completed=self._arrived, total=total, count=counted(self._arrived, "entry")
        )
        _log(event)


def _event_line(event: Event) -> str:
    """Return the line that is printed for an event; empty if no line is printed."""
    match event:
        case PartitionRead():
            return _read(event)
        case SinkCreated():
            return f"{event.sink}: created"
        case SinkAdopted():
            return f"{event.sink}: found with {counted(event.entries, 'entry')}, {event.acknowledged} of them already correct"
    return ""


def _read(event: PartitionRead) -> str:
    rejected = f", {event.rejected} rejected" if event.rejected else ""
    notice = f". {event.notice}" if event.notice else ""
    changes = f"{describe_changes(event)}{rejected}{notice}"
    return f"{event.pipeline}: {event.partition}: {counted(event.records, 'record')} read: {changes}"
