"""The history of a file or table as steps for its page: from its first listing by the source until it is archived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from ingestd.commands.why import PartitionExplanation
from ingestd.core.clock import seconds_of
from ingestd.core.phrases import counted
from ingestd.daemon.reporting import describe_changes
from ingestd.mirror.reports import History

Stage: TypeAlias = Literal["done", "now", "problem"]


class LifeStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the history. ``at``: seconds since the epoch; None if the time is not known.

    ``stage``: ``now``: the step has not ended. ``problem``: the step needs a person.
    """

    name: str
    stage: Stage = "done"
    at: float | None = None
    sentence: str = ""


def life_of(found: PartitionExplanation, history: History | None, *, is_held: bool) -> list[LifeStep]:
    """Return the steps in the order in which they happened; the last step is the current step.

    ``is_held``: the last reading is held; ``found.waiting`` has the reason.
    """
    steps = sorted(_before_reading(history), key=lambda step: step.at or 0)
    waiting = LifeStep(
        name="Held" if is_held else "Waits", stage="problem" if is_held else "now", sentence=found.waiting
    )
    if history is None:
        return [*steps, waiting] if found.waiting else steps
    steps += _reading(history)
    if history.failure:
        steps.append(LifeStep(name="Not read", stage="problem", at=history.failed_at, sentence=history.failure))
    if found.waiting:
        return [*steps, waiting]
    if history.reading is not None and not history.failure:
        steps += _after_reading(found, history)
    return steps


def _before_reading(history: History | None) -> Iterator[LifeStep]:
    if history is None:
        return
    changed = seconds_of(history.facts.get("file.mtime", ""))
    if changed is not None:
        owner = history.facts.get("file.owner", "")
        yield LifeStep(name="Changed", at=changed, sentence=f"file owner {owner}" if owner else "")
    if history.seen_at is not None:
        yield LifeStep(name="Seen", at=history.seen_at, sentence=f"by pipeline {history.pipeline}")


def _reading(history: History) -> Iterator[LifeStep]:
    run = history.reading
    if run is None:
        return
    yield LifeStep(name="Read", at=history.read_at, sentence=f"run {run.id}: {counted(run.records, 'record')}")
    rejected = f"; {run.rejected} rejected" if run.rejected else ""
    yield LifeStep(name="Mapped", at=history.ended_at, sentence=f"entries: {describe_changes(run)}{rejected}")
    if history.again_at:
        yield LifeStep(name="Read again", at=history.again_at, sentence="found unchanged")


def _after_reading(found: PartitionExplanation, history: History) -> Iterator[LifeStep]:
    """Yield the delivery, and where the file is now. The source is notified when all entries are delivered or rejected."""
    acknowledged = history.acknowledged_at
    if acknowledged is not None and acknowledged < history.read_at:
        acknowledged = None  # this acknowledgement belongs to an earlier content
    if history.pending:
        yield LifeStep(name="Delivery", stage="now", sentence=f"{counted(history.pending, 'entry')} pending")
    elif history.reading is not None and history.reading.gave_no_value:
        yield LifeStep(name="Delivered", at=acknowledged, sentence="nothing: no record gave a value")
    else:
        rejected = f", except {counted(history.rejected, 'rejection')}" if history.rejected else ""
        yield LifeStep(name="Delivered", at=acknowledged, sentence=f"completely{rejected}")
    if found.location:
        is_archived = found.location.startswith("it was archived")
        yield LifeStep(
            name="Archived" if is_archived else "Now",
            at=acknowledged if is_archived else None,
            sentence=found.location,
        )
