"""Sentences about locations, held runs, runs and reloads. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.core.record import Position, location_text
from ingestd.daemon.control.requests import Reloaded
from ingestd.mirror.drift import DriftFinding
from ingestd.mirror.port import HeldRun, RunSummary
from ingestd.mirror.rejections import Rejection
from ingestd.telemetry.catalogue.intake import PartitionRead


def format_location(partition: str, position: Position | None) -> str:
    """Return a location such as ``m.csv, row 4`` or ``parts, part=4711``; only the partition if ``position`` is None."""
    if position is None:
        return partition
    return f"{partition}, {location_text(position)}"


def format_origin(rejection: Rejection) -> str:
    """Return where a rejection comes from, such as ``budget · budget.csv, row 3 · key 00417.mass``."""
    location = format_location(rejection.partition, rejection.position)
    key = f" · key {rejection.key}" if rejection.key else ""
    return f"{rejection.pipeline} · {location}{_column(rejection)}{key}"


def format_rejection(rejection: Rejection) -> str:
    """Return a line such as ``budget · budget.csv, row 3: The value is empty.`` The reason does not repeat the file's name."""
    return f"{format_origin(rejection)}: {rejection.reason.removeprefix(f'{rejection.partition}: ')}"


def _column(rejection: Rejection) -> str:
    """Return ``, column mass_kg`` for an entry. The reason of a rejected record contains its column already."""
    return f", column {rejection.field}" if rejection.subject == "entry" and rejection.field else ""


def held_line(held: HeldRun) -> str:
    """Return a sentence on the effect of a held run, why it is held, and how to decide."""
    changes = f"{held.created} created, {held.updated} updated, {held.removed} removed"
    if held.state == "approved":
        todo = f"It was approved but is not written completely; 'ingestd approve {held.run}' writes the rest."
    else:
        todo = (
            f"'ingestd approve {held.run}' delivers it, 'ingestd discard {held.run}' keeps what is delivered; a corrected source "
            "replaces it."
        )
    return (
        f"run {held.run} of {held.partition} (pipeline {held.pipeline}) is held since {moment(held.since)}: "
        f"{counted(held.records, 'new record')}; entries: {changes}. {' '.join(held.reasons)} {todo}"
    )


def by_whom(found: DriftFinding) -> str:
    """Return who changed an entry in the service, and when, if the service reports this."""
    at = f" {moment(found.changed_at)}" if found.changed_at is not None else ""
    return f"by {found.changed_by or 'others'}{at}"


def describe_changes(run: RunSummary | PartitionRead) -> str:
    """Return the counts of a run's entries by kind of change, and the number of records without a value.

    Records that were already in the last reading are not mapped, so their entries are not counted. Therefore, the text omits
    "0 unchanged".
    """
    unchanged = f", {run.unchanged} unchanged" if run.unchanged else ""
    silent = f", {run.valueless} without a value" if run.valueless else ""
    silent = ", no record gave a value" if 0 < run.records == run.valueless else silent
    return f"{run.created} created, {run.updated} updated, {run.removed} removed{unchanged}{silent}"


def describe_retries(reloaded: Reloaded) -> Iterator[str]:
    """Yield the sources that a reload tries again now, and the sources that asked for a wait and are tried later."""
    if reloaded.retried:
        yield f"Sources that could not be read are tried again now: {', '.join(reloaded.retried)}."
    for name, until in reloaded.waiting.items():
        yield f"The source of {name} asked for a wait, so it is not tried again before {moment(until)}."
