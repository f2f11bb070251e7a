"""Shows how far a sync is: a moving display on a terminal, a line for each event elsewhere.

Output that cannot be written, or that nothing reads, neither ends nor delays the sync.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ingestd.process.line_writer import LineWriter
from ingestd.telemetry import Emit, Event, log_event
from ingestd.telemetry.catalogue.delivery import EntriesDelivered, EntriesParked, SinkAdopted, SinkCreated
from ingestd.telemetry.catalogue.intake import PartitionRead


@contextmanager
def progress(*, terminal: bool) -> Iterator[Emit]:
    """Yield an `Emit` that shows events while the context is open. Warnings and errors go to the log as well."""
    if not terminal:
        with _line_output() as write:
            yield lambda event: _in_lines(event, write)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(), transient=True) as display:
        yield _Moving(display)


@contextmanager
def _line_output() -> Iterator[Callable[[str], object]]:
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # a stream in memory, which never blocks
        yield lambda text: click.echo(text, nl=False)
        return
    output = LineWriter(descriptor)
    try:
        yield output.write
    finally:
        # What follows on standard output comes after these lines; a reader that is slow is waited for only now.
        output.close(None)


def _in_lines(event: Event, write: Callable[[str], object]) -> None:
    line = _line(event)
    if line:
        write(f"{line}\n")
    if event.level in {"warning", "error"}:
        log_event(event)


class _Moving:
    """What happened scrolls by; below it a line for what is read and one for what arrives, redrawn by rich."""

    def __init__(self, display: Progress) -> None:
        self._display = display
        self._reading = display.add_task("reading", total=None, count="")
        self._delivering = display.add_task("delivering", total=None, count="")
        self._records = self._changed = self._arrived = 0

    def __call__(self, event: Event) -> None:
        line = _line(event)
        if line:
            self._display.console.print(line, markup=False, highlight=False)
        match event:
            case PartitionRead():
                self._records += event.records
                self._changed += event.created + event.updated + event.removed
                self._display.update(self._reading, count=f"{self._records} records, {self._changed} changes")
            case EntriesDelivered() | EntriesParked():
                self._arrived += event.entries
            case SinkAdopted():
                self._arrived += event.settled
        # What was pending before, or comes from a file that is still being read, is in no total: then the bar only moves.
        total = self._changed if self._arrived <= self._changed else None
        self._display.update(self._delivering, completed=self._arrived, total=total, count=f"{self._arrived} entries")
        if event.level in {"warning", "error"}:
            log_event(event)


def _line(event: Event) -> str:
    match event:
        case PartitionRead():
            return _read(event)
        case SinkCreated():
            return f"{event.sink}: created"
        case SinkAdopted():
            return f"{event.sink}: found with {event.entries} entries, {event.settled} of them as they should be"
    return ""


def _read(event: PartitionRead) -> str:
    changes = f"{event.created} created, {event.updated} updated, {event.removed} removed, {event.unchanged} unchanged"
    rejected = f", {event.rejected} rejected" if event.rejected else ""
    return f"{event.pipeline}: {event.partition}: {event.records} records read: {changes}{rejected}"
