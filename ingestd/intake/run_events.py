"""The events of a complete run."""

from __future__ import annotations

from collections.abc import Iterator

from ingestd.core.record import Partition
from ingestd.intake.run import Run
from ingestd.mirror.port import RunSummary
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import (
    PartitionRead,
    PartitionUnchanged,
    RecordsRejected,
    RunHeld,
    RunReleased,
)


def run_events(pipeline: str, partition: Partition, run: Run, summary: RunSummary) -> Iterator[Event]:
    """Yield the events of a run: its result, and why records are rejected."""
    about = {"pipeline": pipeline, "partition": partition.name}
    held = summary.withheld
    if held is not None:
        if held.run == summary.id:
            yield RunHeld(**about, run=held.run, sentence=held.sentence)
        return
    if summary.replaces is not None:
        yield RunReleased(**about, run=summary.replaces, decision="replaced", by="")
    seconds = round(run.seconds, 3)
    if not (summary.changed or summary.valueless):
        yield PartitionUnchanged(**about, records=summary.records, seconds=seconds)
        return
    yield PartitionRead(
        **about,
        records=summary.records,
        created=summary.created,
        updated=summary.updated,
        unchanged=summary.unchanged,
        removed=summary.removed,
        rejected=summary.rejected,
        valueless=summary.valueless,
        seconds=seconds,
        map_seconds=round(run.map_seconds, 6),
        store_seconds=round(run.store_seconds, 6),
        notice=summary.notice,
    )
    if summary.rejected:
        sentence = run.first_reject or "'ingestd rejected list' shows the reasons"
        yield RecordsRejected(**about, records=summary.rejected, sentence=sentence)
