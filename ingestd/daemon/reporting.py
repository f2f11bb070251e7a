"""Sentences about the state of partitions and sources. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.core.record import NOTICE
from ingestd.daemon.control.requests import Explained, Reloaded
from ingestd.mirror.port import HeldRun, RunSummary
from ingestd.mirror.reports import History
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


def partition_sentence(
    pipeline: str, name: str, explained: Explained, history: History | None, *, is_running: bool
) -> str:
    """Return why a partition waits, or what happened to it; empty if neither the source nor the mirror knows it.

    ``is_running``: whether a daemon runs. Without one, waiting partitions are not read.
    """
    read = history is not None and history.reading is not None
    if explained.waiting and (is_running or history is None or not history.failure):
        before = f" Its earlier content was read {moment(history.read_at)}." if history is not None and read else ""
        return f"{explained.waiting}{before}" + ("" if is_running else " No daemon runs, so nothing is read.")
    if history is None:
        return ""
    if history.failure:
        return f"{name} could not be read {moment(history.failed_at)} (pipeline {pipeline}): {history.failure}"
    if not read:
        return f"{name} was found by pipeline {pipeline} but has not been read yet."
    location = f"; {explained.location}" if explained.location else ""
    return f"{name} {_read(pipeline, history)}; {_delivered(history)}{location}."


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


def _read(pipeline: str, history: History) -> str:
    run = history.reading
    if run is None:
        return ""
    owner = history.facts.get("file.owner", "")
    text = f"was read {moment(history.read_at)} by pipeline {pipeline}: {counted(run.records, 'record')}"
    text += f", file owner {owner}" if owner else ""
    text += f", entries: {describe_changes(run)}"
    if history.same_as:
        other = (
            "its own earlier content" if history.same_as == history.name else f"the earlier one of {history.same_as}"
        )
        text += f"; its content equals {other}"
    if notice := history.facts.get(NOTICE):
        text += f"; notice: {notice.removesuffix('.')}"
    return text + (f"; it was found unchanged {moment(history.again_at)}" if history.again_at else "")


def _delivered(history: History) -> str:
    rest = []
    if history.pending:
        rest.append(f"{history.pending} of its entries are pending")
    if history.rejected:
        rest.append(f"{history.rejected} rejected ('ingestd rejected list --file {history.name}')")
    return " and ".join(rest) if rest else "all of it is delivered"
