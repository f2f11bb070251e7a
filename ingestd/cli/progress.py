"""The progress output of `ingestd sync`: a live display on a terminal, else a line for each event.

A full or closed output neither ends nor delays the sync.
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
    """Yield an `Emit` that prints events while the context is open. Warnings and errors go to the log, too."""
    if not terminal:
        with _line_output() as write:
            yield lambda event: _print_line(event, write)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(), transient=True) as display:
        yield _LiveDisplay(display)


@contextmanager
def _line_output() -> Iterator[Callable[[str], object]]:
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # an in-memory stream never blocks
        yield lambda text: click.echo(text, nl=False)
        return
    output = LineWriter(descriptor)
    try:
        yield output.write
    finally:
        output.close(None)  # waits for a slow reader, so that later output follows these lines


def _print_line(event: Event, write: Callable[[str], object]) -> None:
    line = _line(event)
    if line:
        write(f"{line}\n")
    if event.level in {"warning", "error"}:
        log_event(event)


class _LiveDisplay:
    """Prints events above two progress bars: one for reading, one for delivery."""

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
        # Entries from before this sync, or of a file that is still being read, are in no total.
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
            return f"{event.sink}: found with {event.entries} entries, {event.settled} of them already correct"
    return ""


def _read(event: PartitionRead) -> str:
    changes = f"{event.created} created, {event.updated} updated, {event.removed} removed, {event.unchanged} unchanged"
    rejected = f", {event.rejected} rejected" if event.rejected else ""
    return f"{event.pipeline}: {event.partition}: {event.records} records read: {changes}{rejected}"
