"""The differences between a saved plan and what a sync would do now. Performs no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from ingestd.commands.sync_plan.values import PartitionPlan, PipelinePlan, SyncPlan
from ingestd.core.phrases import counted


def plan_differences(saved: SyncPlan, now: SyncPlan) -> list[str]:
    """Return a sentence for each difference that prevents the execution of the saved plan; empty if there is none."""
    return [*_pipelines(saved, now), *_sinks(saved, now), *_partitions(saved, now)]


def _pipelines(saved: SyncPlan, now: SyncPlan) -> Iterator[str]:
    present = {one.name: one for one in now.pipelines}
    for planned in saved.pipelines:
        found = present.get(planned.name)
        if found is None:
            yield f"The configuration has changed: it has no pipeline {planned.name} any more."
        else:
            yield from _pipeline(planned, found)


def _pipeline(planned: PipelinePlan, found: PipelinePlan) -> Iterator[str]:
    if bool(planned.paused) != bool(found.paused):
        yield f"Pipeline {planned.name} has changed: {found.paused or 'it is not paused any more.'}"
    if planned.configuration != found.configuration:
        yield (
            f"The configuration has changed: source, entries, contract, guard, sink or lookup files of pipeline "
            f"{planned.name} are not the same as in the plan."
        )
    if planned.commits != found.commits:
        yield (
            f"The state has changed: {found.commits - planned.commits} commits have changed entries of pipeline "
            f"{planned.name} since the plan was made."
        )
    if planned.failures != found.failures:
        reason = " ".join(found.failures) or "it is available now, but was not available when the plan was made."
        yield f"The source of pipeline {planned.name} has changed: {reason}"


def _sinks(saved: SyncPlan, now: SyncPlan) -> Iterator[str]:
    present = {one.name: one for one in now.sinks}
    for planned in saved.sinks:
        found = present.get(planned.name)
        if found is not None and found.known != planned.known:
            yield f"The state has changed: after the plan was made, entries were delivered to the sink {planned.name}."
    if saved.pending != now.pending:
        before, after = (sum(one.pending for one in plan.sinks) for plan in (saved, now))
        yield f"The state has changed: {counted(after, 'entry')} pending now; the plan has {before} pending, or different ones."


def _partitions(saved: SyncPlan, now: SyncPlan) -> Iterator[str]:
    planned = {(one.pipeline, one.partition): one for one in saved.partitions}
    present = {(one.pipeline, one.partition): one for one in now.partitions}
    # A partition without an effect is no difference if only ``now`` has it: a file may be written again with the same bytes.
    effective = [name for name, one in present.items() if one.has_effect]
    for name in dict.fromkeys([*planned, *effective]):
        sentence = _partition(planned.get(name), present.get(name))
        if sentence:
            yield sentence


def _partition(planned: PartitionPlan | None, found: PartitionPlan | None) -> str:
    if planned is None and found is not None:
        return (
            f"The source has changed: {found.partition} (pipeline {found.pipeline}) is not in the plan. It has new "
            f"content: {counted(found.records, 'record')}; entries: {found.counts}."
        )
    if planned is not None and found is None:
        return (
            f"The source has changed: {planned.partition} (pipeline {planned.pipeline}) has nothing to read any more. The plan "
            f"has {counted(planned.records, 'record')} of this partition."
        )
    if planned is None or found is None:
        return ""
    named = f"{planned.partition} (pipeline {planned.pipeline})"
    if (planned.content, planned.failure) != (found.content, found.failure):
        records = f"{found.records} instead of {counted(planned.records, 'record')}"
        difference = f"{records}; entries: {found.counts}, instead of {planned.counts}"
        if (planned.records, planned.counts) == (found.records, found.counts):
            difference = "the same number of records and changed entries, but different values"
        return f"The source has changed: {named} has other content than in the plan: {difference}."
    if (planned.effect, planned.held, planned.counts) != (found.effect, found.held, found.counts):
        return f"The effect of {named} has changed: {found.counts}, instead of {planned.counts}."
    return ""
