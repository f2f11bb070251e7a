"""Sentences about held runs, runs and reloads. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.daemon.control.requests import Reloaded
from ingestd.mirror.port import HeldRun, RunSummary
from ingestd.telemetry.catalogue.intake import PartitionRead


def held_line(held: HeldRun) -> str:
    """Return what a held run would do, why it is held, and what to do about it."""
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


def describe_changes(run: RunSummary | PartitionRead) -> str:
    """Return the entries of a run by kind of change.

    Records that the last reading had, too, are not mapped, so their entries are not counted. A run with such records only would
    otherwise report "0 unchanged".
    """
    unchanged = f", {run.unchanged} unchanged" if run.unchanged else ""
    return f"{run.created} created, {run.updated} updated, {run.removed} removed{unchanged}"


def describe_retries(reloaded: Reloaded) -> Iterator[str]:
    """Yield which sources a reload tries again now, and which later, because they asked for that."""
    if reloaded.retried:
        yield f"Sources that could not be read are tried again now: {', '.join(reloaded.retried)}."
    for name, until in reloaded.waiting.items():
        yield f"The source of {name} asked for a wait, so it is not tried again before {moment(until)}."
