"""The progress output of `ingestd sync`: a live display on a terminal, else a line for each event.

A full or closed output neither ends nor delays the sync.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ingestd.core.phrases import counted
from ingestd.daemon.reporting import describe_changes
from ingestd.process.line_queue import LineQueue
from ingestd.process.terminal_text import echo, safe_line
from ingestd.telemetry import Emit, Event, log_event
from ingestd.telemetry.catalogue.delivery import SinkAdopted, SinkCreated
from ingestd.telemetry.catalogue.intake import PartitionRead


@contextmanager
def progress(*, terminal: bool) -> Iterator[Emit]:
    """Yield an `Emit` that prints events while the context is open. Warnings and errors go to the log, too."""
    if not terminal:
        with _line_output() as write:
            yield lambda event: _print_line(event, write)
        return
    from ingestd.cli.live_display import live_display  # noqa: PLC0415 - rich is expensive to import

    with live_display() as emit:
        yield emit


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
    line = event_line(event)
    if line:
        write(safe_line(line))
    if event.level in {"warning", "error"}:
        log_event(event)


def event_line(event: Event) -> str:
    """Return the line that is printed for an event; empty: none."""
    match event:
        case PartitionRead():
            return _read(event)
        case SinkCreated():
            return f"{event.sink}: created"
        case SinkAdopted():
            return (
                f"{event.sink}: found with {counted(event.entries, 'entry')}, {event.settled} of them already correct"
            )
    return ""


def _read(event: PartitionRead) -> str:
    rejected = f", {event.rejected} rejected" if event.rejected else ""
    notice = f". {event.notice}" if event.notice else ""
    changes = f"{describe_changes(event)}{rejected}{notice}"
    return f"{event.pipeline}: {event.partition}: {counted(event.records, 'record')} read: {changes}"
