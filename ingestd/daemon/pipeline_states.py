"""The facts about each pipeline, from the state file and from the running daemon, for `derive_state`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.core.pipeline_state import PipelineFacts, PipelineState, derive_state
from ingestd.intake.notice import NoticeState, OperatorNotice, SourceHealth
from ingestd.mirror.port import HeldRun, LaneBlocker, PipelineStatus
from ingestd.mirror.reports import FailedPart, PipelinePause
from ingestd.mirror.sqlite import Observer
from ingestd.sdk.connector import WaitingReason
from ingestd.settings.model import PipelineSettings


class SourceNotices(msgspec.Struct, frozen=True, kw_only=True):
    """What the running daemon knows of the sources of all pipelines. Empty if no daemon runs.

    ``health``: the states of the sources with a connection. ``waiting``: by pipeline and reason, the files that are not read as
    they are. ``tried``: the pipelines with a source that this process has tried to read.
    """

    notices: tuple[OperatorNotice, ...] = ()
    health: tuple[SourceHealth, ...] = ()
    waiting: dict[str, dict[WaitingReason, int]] = msgspec.field(default_factory=dict)
    tried: tuple[str, ...] = ()


def read_states(
    mirror: Observer,
    configured: Sequence[PipelineSettings],
    sources: SourceNotices,
    *,
    known: Sequence[PipelineStatus],
    held: Sequence[HeldRun],
    pauses: Sequence[PipelinePause],
    failed_parts: Sequence[FailedPart],
) -> tuple[PipelineState, ...]:
    """Return the states of the configured pipelines, in their order. The cost is independent of the number of entries."""
    pending = {one.address: one.pending for one in mirror.backlog()}
    blockers, drift = mirror.blockers(), mirror.open_drift()
    statuses, holds = {one.name: one for one in known}, Counter(one.pipeline for one in held)
    notices: defaultdict[str, list[OperatorNotice]] = defaultdict(list)
    for notice in sources.notices:
        notices[notice.pipeline].append(notice)
    failures = {one.part: failed_part_sentence(one) for one in failed_parts}
    tried = set(sources.tried)
    paused = {one.pipeline: pause_sentence(one) for one in pauses}
    states = []
    for pipeline in configured:
        name, sink = pipeline.name, pipeline.sink
        status = statuses.get(name, PipelineStatus(name=name, partitions=0, rejected=0))
        waits = pending.get(sink, 0)
        found: list[tuple[NoticeState, str]] = [
            *(("failed", failures[part]) for part in parts_of(name, sink) if part in failures),
            *((one.state, one.sentence) for one in notices[name]),
            *(_of_delivery(blockers.get(sink)) if waits else ()),
            *_of_last_run(status, is_outdated=name in tried),
        ]
        waiting = sources.waiting.get(name, {})
        unreadable = waiting.get("unreadable", 0)
        facts = PipelineFacts(
            pause=paused.get(name, ""),
            failures=_sentences(found, "failed"),
            outages=_sentences(found, "unavailable"),
            notices=_sentences(found, "attention"),
            rejected=status.rejected,
            drift=drift.get(sink, 0),
            unreadable_files=unreadable,
            held=holds[name],
            waiting_files=sum(waiting.values()) - unreadable,
            pending=waits,
            has_run=status.last_run_at is not None,
        )
        states.append(derive_state(name, facts))
    return tuple(states)


def parts_of(pipeline: str, sink: SinkAddress) -> tuple[str, ...]:
    """Return the names of the daemon's parts that a pipeline needs."""
    return (f"intake {pipeline}", f"lookups {pipeline}", f"lane {sink}")


def failed_part_sentence(failed: FailedPart) -> str:
    """Return which part failed, since when and why."""
    return (
        f"{failed.part} failed {counted(failed.failures, 'time')} since {moment(failed.since)} and restarts "
        f"{moment(failed.retry_at)}: {failed.sentence}. The log has the traceback. Please report it."
    )


def pause_phrase(pause: PipelinePause) -> str:
    """Return since when a pipeline is paused and by whom, for the middle of a sentence."""
    return f"paused since {moment(pause.since)} by {pause.by}"


def pause_sentence(pause: PipelinePause) -> str:
    """Return what a pause means and how it ends."""
    waiting = f"{counted(pause.pending, 'pending entry')} of it {'is' if pause.pending == 1 else 'are'} not sent"
    end = f"'ingestd resume {pause.pipeline}' ends the pause."
    return f"It is {pause_phrase(pause)}: its source is not read, and {waiting}. {end}"


def _of_delivery(blocker: LaneBlocker | None) -> Iterator[tuple[NoticeState, str]]:
    if blocker is not None:
        yield ("failed" if blocker.standing == "paused" else "unavailable"), blocker.sentence


def _of_last_run(status: PipelineStatus, *, is_outdated: bool) -> Iterator[tuple[NoticeState, str]]:
    """Yield why the last run was incomplete. Unless something is rejected, a later pass over the source knows more."""
    if status.failure_rejected:
        yield "attention", status.failure
    elif status.failure and not is_outdated:
        yield "unavailable", status.failure


def _sentences(found: Sequence[tuple[NoticeState, str]], state: NoticeState) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentence for one, sentence in found if one == state))
