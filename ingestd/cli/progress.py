"""How far a sync is: a moving display on a terminal, a line for each thing that happened elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from ingestd.telemetry import Emit, Event, log_event
from ingestd.telemetry.catalogue.delivery import EntriesDelivered, SinkAdopted, SinkCreated
from ingestd.telemetry.catalogue.intake import PartitionRead


@contextmanager
def progress(*, terminal: bool) -> Iterator[Emit]:
    """An `Emit` that shows what it is told, while the context is open. Warnings and errors go to the log as well."""
    if not terminal:
        yield _in_lines
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(), transient=True) as display:
        yield _Moving(display)


def _in_lines(event: Event) -> None:
    match event:
        case PartitionRead():
            click.echo(_read(event))
        case SinkCreated():
            click.echo(f"{event.sink}: created")
        case SinkAdopted():
            click.echo(f"{event.sink}: found with {event.entries} entries, {event.settled} of them as they should be")
    if event.level in {"warning", "error"}:
        log_event(event)


class _Moving:
    """One line for what is read and one a sink for what arrives; rich redraws them ten times a second."""

    def __init__(self, display: Progress) -> None:
        self._display = display
        self._reading = display.add_task("reading", total=None, count="")
        self._sinks: dict[str, TaskID] = {}
        self._changed = 0
        self._arrived: dict[str, int] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case PartitionRead():
                self._changed += event.created + event.updated + event.removed
                self._display.console.print(_read(event), markup=False, highlight=False)
                self._display.update(self._reading, count=f"{self._changed} changes")
            case EntriesDelivered():
                self._arrive(event.sink, event.entries)
        if event.level in {"warning", "error"}:
            log_event(event)

    def _arrive(self, sink: str, entries: int) -> None:
        if sink not in self._sinks:
            self._sinks[sink] = self._display.add_task(sink, total=None, count="")
        self._arrived[sink] = self._arrived.get(sink, 0) + entries
        self._display.update(self._sinks[sink], count=f"{self._arrived[sink]} delivered")


def _read(event: PartitionRead) -> str:
    changes = f"{event.created} created, {event.updated} updated, {event.removed} removed, {event.unchanged} unchanged"
    rejected = f", {event.rejected} rejected" if event.rejected else ""
    return f"{event.pipeline}: {event.partition}: {event.records} records read: {changes}{rejected}"
