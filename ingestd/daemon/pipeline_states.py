"""The facts about each pipeline, from the state file and from the running daemon, for `derive_state`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.core.pipeline_state import PipelineFacts, PipelineState, derive_state
from ingestd.intake.notice import NoticeState, OperatorNotice, SourceHealth
from ingestd.mirror.port import HeldRun, LaneBlocker
from ingestd.mirror.reports import FailedPart, LastRun, PipelinePause, SinkBacklog
from ingestd.mirror.sqlite import Observer
from ingestd.sdk.connector import WaitingReason
from ingestd.settings.model import PipelineSettings


class SourceNotices(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of the running daemon about the sources of all pipelines. Empty if no daemon runs.

    ``health``: the states of the sources with a connection. ``waiting``: by pipeline and reason, the number of files that are
    not read in their current state. ``tried``: the pipelines with a source that this process has tried to read.
    """

    notices: tuple[OperatorNotice, ...] = ()
    health: tuple[SourceHealth, ...] = ()
    waiting: dict[str, dict[WaitingReason, int]] = msgspec.field(default_factory=dict)
    tried: tuple[str, ...] = ()


class StoredFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of the state file about the pipelines and sinks; see the methods of `Observer`.

    ``rejected``: the number of rejections by pipeline.
    """

    backlog: Sequence[SinkBacklog]
    blockers: Mapping[SinkAddress, LaneBlocker]
    drift: Mapping[SinkAddress, int]
    rejected: Mapping[str, int]
    last_runs: Mapping[str, LastRun]
    held: Sequence[HeldRun]
    pauses: Sequence[PipelinePause]
    failed_parts: Sequence[FailedPart]


def read_facts(mirror: Observer, *, rejected: Mapping[str, int], runs: bool) -> StoredFacts:
    """Read all facts except ``rejected``. ``runs``: a daemon runs.

    The cost is independent of the number of entries. It depends only on the number of partitions of paused pipelines.
    """
    return StoredFacts(
        backlog=mirror.backlog(),
        blockers=mirror.blockers(),
        drift=mirror.open_drift(),
        rejected=rejected,
        last_runs=mirror.pipeline_last_runs(),
        held=mirror.held_runs(),
        pauses=mirror.pauses(),
        failed_parts=mirror.failed_parts() if runs else (),
    )


def derive_states(
    facts: StoredFacts, configured: Sequence[PipelineSettings], sources: SourceNotices
) -> tuple[PipelineState, ...]:
    """Return the states of the configured pipelines, in their order."""
    pending = {one.address: one.pending for one in facts.backlog}
    holds = Counter(one.pipeline for one in facts.held)
    notices: defaultdict[str, list[OperatorNotice]] = defaultdict(list)
    for notice in sources.notices:
        notices[notice.pipeline].append(notice)
    failures = {one.part: failed_part_sentence(one) for one in facts.failed_parts}
    tried = set(sources.tried)
    paused = {one.pipeline: pause_sentence(one) for one in facts.pauses}
    states = []
    for pipeline in configured:
        name, sink = pipeline.name, pipeline.sink
        last_run = facts.last_runs.get(name)
        waits = pending.get(sink, 0)
        found: list[tuple[NoticeState, str]] = [
            *(("failed", failures[part]) for part in parts_of(name, sink) if part in failures),
            *((one.state, one.sentence) for one in notices[name]),
            *(_of_delivery(facts.blockers.get(sink)) if waits else ()),
            *_of_last_run(last_run, is_outdated=name in tried),
        ]
        waiting = sources.waiting.get(name, {})
        unreadable = waiting.get("unreadable", 0)
        of_pipeline = PipelineFacts(
            pause=paused.get(name, ""),
            failures=_sentences(found, "failed"),
            outages=_sentences(found, "unavailable"),
            notices=_sentences(found, "attention"),
            rejected=facts.rejected.get(name, 0),
            drift=facts.drift.get(sink, 0),
            unreadable_files=unreadable,
            held=holds[name],
            waiting_files=sum(waiting.values()) - unreadable,
            pending=waits,
            has_run=last_run is not None,
        )
        states.append(derive_state(name, of_pipeline))
    return tuple(states)


def parts_of(pipeline: str, sink: SinkAddress) -> tuple[str, ...]:
    """Return the names of the daemon's parts that a pipeline needs."""
    return (f"intake {pipeline}", f"lookups {pipeline}", f"lane {sink}")


def failed_part_sentence(failed: FailedPart) -> str:
    """Return a sentence on which part failed, since when and why."""
    return (
        f"{failed.part} failed {counted(failed.failures, 'time')} since {moment(failed.since)} and restarts "
        f"{moment(failed.retry_at)}: {failed.sentence}. The log has the traceback. Please report it."
    )


def other_failures(failed: Sequence[FailedPart], pipelines: Iterable[tuple[str, SinkAddress]]) -> Iterator[str]:
    """Yield a sentence for each failed part that no pipeline needs. ``pipelines``: names and sinks."""
    needed = {part for name, sink in pipelines for part in parts_of(name, sink)}
    yield from (failed_part_sentence(one) for one in failed if one.part not in needed)


def pause_phrase(pause: PipelinePause) -> str:
    """Return a phrase on who paused a pipeline and when, for the middle of a sentence."""
    return f"paused since {moment(pause.since)} by {pause.by}"


def pause_sentence(pause: PipelinePause) -> str:
    """Return a sentence on the effect of a pause, and how it ends."""
    waiting = f"its {counted(pause.pending, 'pending entry')} {'is' if pause.pending == 1 else 'are'} not sent"
    end = f"'ingestd resume {pause.pipeline}' ends the pause."
    return f"It is {pause_phrase(pause)}: its source is not read, and {waiting}. {end}"


def _of_delivery(blocker: LaneBlocker | None) -> Iterator[tuple[NoticeState, str]]:
    if blocker is not None:
        yield ("failed" if blocker.status == "paused" else "unavailable"), blocker.sentence


def _of_last_run(run: LastRun | None, *, is_outdated: bool) -> Iterator[tuple[NoticeState, str]]:
    """Yield why the last run was incomplete. ``is_outdated``: a later pass reports all failures except rejections."""
    if run is not None and run.failure_rejected:
        yield "attention", run.failure
    elif run is not None and run.failure and not is_outdated:
        yield "unavailable", run.failure


def _sentences(found: Sequence[tuple[NoticeState, str]], state: NoticeState) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentence for one, sentence in found if one == state))
