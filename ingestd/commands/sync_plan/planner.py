"""Makes a plan: reads the sources into a copy of the state file, and compares the copy with the original."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from ingestd.commands.sync_plan.values import (
    VERSION,
    PartitionPlan,
    PipelinePlan,
    PlannedChange,
    PlannedReject,
    SinkPlan,
    SyncPlan,
)
from ingestd.core.clock import moment
from ingestd.core.mapping import Mapping
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.configuration_changes import source_digests
from ingestd.daemon.parts import make_reader, open_or_report
from ingestd.daemon.pipeline_states import pause_sentence
from ingestd.intake import PassReport, Reader, SourceSupervisor
from ingestd.intake.read_only_source import ReadOnlySource
from ingestd.intake.recorded_intake import PartitionReading, RecordedIntake
from ingestd.mirror.port import HeldRun
from ingestd.mirror.sqlite import EntryDifference, StateCopy
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.process.supervision import Run
from ingestd.settings.model import PipelineSettings
from ingestd.telemetry import Emit, Event
from ingestd.telemetry.catalogue.intake import SourceFailed

T = TypeVar("T")

_DIGEST_BITS = 256


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and the reports of the passes that read its sources."""

    plan: SyncPlan
    passes: tuple[PassReport, ...]


class _Tally(msgspec.Struct, kw_only=True):
    """The counts of changes, the first changes of each kind, and a digest of all changes that ignores their order."""

    rows: int
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    first: list[PlannedChange] = msgspec.field(default_factory=list)
    digest: int = 0

    def add(self, change: EntryDifference) -> None:
        self.counts[change.kind] += 1
        self.counts["retyped"] += change.kind == "changed" and change.old_type != change.new_type
        values = (change.kind, change.key, change.old, change.old_type, change.new, change.new_type)
        text = json.dumps(values).encode()
        self.digest = (self.digest + int.from_bytes(hashlib.sha256(text).digest())) % 2**_DIGEST_BITS
        if self.counts[change.kind] <= self.rows:
            self.first.append(msgspec.convert(change, PlannedChange, from_attributes=True))


async def make_plan(
    configuration: Configuration,
    names: Sequence[str],
    *,
    copy: StateCopy,
    rows: int,
    emit: Emit,
    on_records: Callable[[int], None] = lambda _: None,
) -> Planned:
    """Read the sources of ``names`` once into ``copy``, and return what a sync would do. No source is changed.

    ``rows``: the maximum number of changes of each kind, and of rejects, for each partition of the plan. ``on_records`` is
    called from a thread with the number of records of each batch. If `make_plan` is cancelled, passes end at their next batch.

    Raises:
        MirrorError: the copy can't be written.
    """
    pipelines = [pipeline for pipeline in configuration.settings.pipelines if pipeline.name in names]
    version = await to_end(copy.version)
    sources = source_digests(configuration.settings.pipelines)
    await to_end(partial(copy.intake.activate, list(sources), sources=sources))
    recorded = RecordedIntake(copy.intake, on_records=on_records)
    readers = [_reader(configuration, pipeline, recorded, copy.path.parent, emit) for pipeline in pipelines]
    supervisor = SourceSupervisor(readers, emit=_failures_to(emit), random=random.random, keep_running=_never)
    paused = {pause.pipeline: pause_sentence(pause) for pause in await to_end(copy.pauses)}
    supervisor.use_pauses(paused)
    passes: list[PassReport] = []
    try:
        for name in names:
            passes += await supervisor.read_once([name])
    finally:
        await supervisor.aclose()
    partitions = await to_end(partial(_partitions, copy, recorded, names, rows))
    sinks = await to_end(copy.sinks)
    known = {sink.name: sink for sink in sinks}
    compared = _compared_sinks(configuration, passes)
    unexplained = {
        sink.name: await to_end(partial(copy.unexplained, sink.id, every=compared[sink.name]))
        for sink in sinks
        if sink.adopted and sink.name in compared
    }
    wanted = dict.fromkeys(
        [*(str(pipeline.sink) for pipeline in pipelines), *(one.name for one in sinks if one.pending)]
    )
    plan = SyncPlan(
        version=VERSION,
        made=moment(time.time(), UTC),
        configuration=str(configuration.path),
        pipelines=tuple(
            PipelinePlan(
                name=pipeline.name,
                sink=str(pipeline.sink),
                skipped=len(recorded.opened[pipeline.name] - recorded.readings.keys()),
                failures=_failures(pipeline.name, passes),
                configuration=_configuration_digest(pipeline, sources[pipeline.name], recorded),
                commits=version.changes.get(pipeline.name, 0),
                paused=paused.get(pipeline.name, ""),
            )
            for pipeline in pipelines
        ),
        partitions=tuple(partitions),
        sinks=tuple(
            SinkPlan(
                name=name,
                known=name in known and known[name].adopted,
                pending=known[name].pending if name in known else 0,
                unexplained=unexplained.get(name, 0),
            )
            for name in wanted
        ),
        pending=version.pending,
    )
    return Planned(plan=plan, passes=tuple(passes))


async def to_end(call: Callable[[], T]) -> T:
    """Run a call in a thread. If cancelled, wait for its end, because the caller then deletes files that the call uses."""
    running = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def _reader(
    configuration: Configuration, pipeline: PipelineSettings, recorded: RecordedIntake, folder: Path, emit: Emit
) -> Reader:
    return make_reader(
        configuration,
        pipeline,
        connector=ReadOnlySource(open_or_report(configuration, pipeline, emit=_failures_to(emit), keeps=False)),
        mapping=Mapping(pipeline.entries),
        mirror=cast("IntakeStore", recorded),
        emit=_failures_to(emit),
        folder=folder,
    )


def _failures_to(emit: Emit) -> Emit:
    """Return an `Emit` that reports only bugs. Other events would say that records were stored, but a plan stores none."""

    def pass_on(event: Event) -> None:
        if isinstance(event, SourceFailed):
            emit(event)

    return pass_on


async def _never(part: str, run: Run) -> None:
    raise RuntimeError(f"a plan starts no part, but {part} was started as {run}")


def _failures(pipeline: str, passes: Iterable[PassReport]) -> tuple[str, ...]:
    found = [
        sentence
        for one in passes
        if one.pipeline == pipeline
        for sentence in (one.away, one.broken, *one.rejected)
        if sentence
    ]
    return tuple(dict.fromkeys(found))


def _compared_sinks(configuration: Configuration, passes: Iterable[PassReport]) -> dict[str, bool]:
    """Return the sinks from which a sync may remove unexplained entries; see `OwnershipKeeper`.

    True: all unexplained entries may be removed. False: only entries that a configured pipeline has written.
    """
    last = {one.pipeline: one for one in passes}
    writers: defaultdict[str, list[PipelineSettings]] = defaultdict(list)
    for pipeline in configuration.settings.pipelines:
        writers[str(pipeline.sink)].append(pipeline)
    return {
        sink: all(one.unexplained == "remove" for one in pipelines)
        for sink, pipelines in writers.items()
        if all(
            one.unexplained != "keep" and one.name in last and last[one.name].whole and last[one.name].complete
            for one in pipelines
        )
    }


def _configuration_digest(pipeline: PipelineSettings, source: str, recorded: RecordedIntake) -> str:
    text = json.dumps([source, recorded.digests.get(pipeline.name, ""), repr(pipeline.guard)])
    return hashlib.sha256(text.encode()).hexdigest()


def _partitions(copy: StateCopy, recorded: RecordedIntake, names: Sequence[str], rows: int) -> list[PartitionPlan]:
    tallies: defaultdict[int, _Tally] = defaultdict(lambda: _Tally(rows=rows))
    for change in copy.changes():
        tallies[change.partition].add(change)
    held: dict[int, HeldRun] = {}
    for partition, run in copy.held():
        if run.pipeline in names:
            held[partition] = run
            tallies[partition] = _Tally(rows=rows)
            for change in copy.held_changes(run.run):
                tallies[partition].add(change)
    identities = dict.fromkeys([*recorded.readings, *held, *tallies])
    return [
        _partition(copy, identity, recorded.readings.get(identity), held.get(identity), tallies[identity])
        for identity in identities
    ]


def _partition(
    copy: StateCopy, identity: int, reading: PartitionReading | None, held: HeldRun | None, tally: _Tally
) -> PartitionPlan:
    found, counts = copy.partition(identity), tally.counts
    before = counts["removed"] if held is not None else counts["created"]
    return PartitionPlan(
        pipeline=found.pipeline,
        partition=found.name,
        sink=found.sink,
        records=reading.records if reading is not None else held.records if held is not None else 0,
        rejected=reading.rejected if reading is not None else 0,
        created=counts["created"],
        changed=counts["changed"],
        retyped=counts["retyped"],
        removed=counts["removed"],
        unchanged=max(0, found.entries - before - counts["changed"]),
        held=held.reasons if held is not None else (),
        failure=reading.failure if reading is not None else "",
        notice=reading.notice if reading is not None else "",
        changes=tuple(sorted(tally.first, key=lambda one: one.kind)),
        rejects=tuple(
            PlannedReject(position=position, reason=reason)
            for position, reason in copy.rejections(identity, limit=tally.rows)
        )
        if reading is not None
        else (),
        content=reading.content if reading is not None else "",
        effect=f"{tally.digest:064x}",
    )
