"""The text and JSON forms of the status."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from ingestd.core.clock import moment
from ingestd.core.phrases import counted
from ingestd.daemon.pipeline_states import failed_part_sentence, pause_sentence
from ingestd.daemon.reporting import describe_changes, format_rejection, held_line
from ingestd.daemon.status import Status
from ingestd.intake.notice import SourceHealth
from ingestd.mirror.drift import DriftStatus
from ingestd.mirror.reports import PipelineStatus, SinkStatus
from ingestd.process.redaction import redact
from ingestd.process.terminal_text import safe_line
from ingestd.standby.status import StandbyStatus


def format_status(found: Status, *, as_json: bool) -> str:
    """Return the status without secrets as lines, or as one JSON object."""
    if as_json:
        return json.dumps(redact(msgspec.to_builtins(found)), ensure_ascii=False, indent=2)
    return "\n".join(map(safe_line, _status_lines(found)))


def format_standby(found: StandbyStatus, *, as_json: bool) -> str:
    """Return the standby status of this host as lines, or as one JSON object."""
    if as_json:
        return json.dumps(redact({"standby": msgspec.to_builtins(found)}), ensure_ascii=False, indent=2)
    return "\n".join(map(safe_line, found.lines))


def _status_lines(found: Status) -> Iterator[str]:
    runs = f"runs (process {found.pid})" if found.pid else "does not run"
    yield f"The daemon {runs}. State file: {found.state}{'' if found.exists else ', not created yet'}."
    if found.standby is not None:
        yield from found.standby.lines
    yield f"{found.pending} pending, {found.rejected} rejected."
    yield from map(failed_part_sentence, found.failed_parts)
    yield from _source_lines(found)
    for held in found.held:
        yield held_line(held)
    yield from _pipeline_lines(found)
    for sink in found.sinks:
        yield sink_line(sink)
    for rejection in found.rejections:
        yield f"rejected {format_rejection(rejection)}"
    if found.rejected > len(found.rejections):
        older = counted(found.rejected - len(found.rejections), "older rejection")
        yield f"{older}; 'ingestd rejected list' lists every rejection"
    if found.forgotten is not None:
        yield (
            f"{counted(found.forgotten.count, 'rejection')} deleted because of rejected.keep_days and rejected.keep_rows, "
            f"most recently {moment(found.forgotten.at)}"
        )


def _pipeline_lines(found: Status) -> Iterator[str]:
    """Yield the state of each pipeline with its last run, and the reasons that are not in other lines."""
    runs = {pipeline.name: pipeline for pipeline in found.pipelines}
    shown = {
        *map(failed_part_sentence, found.failed_parts),
        *(notice.sentence for notice in found.notices),
        *(sink.blocker.sentence for sink in found.sinks if sink.blocker is not None),
        *(pipeline.failure for pipeline in found.pipelines),
    }
    for state in found.states:
        reasons = [one.sentence for one in state.reasons if one.state == state.state and one.sentence not in shown]
        because = f" ({', '.join(reasons)})" if reasons else ""
        pipeline = runs.get(state.name)
        last = f"; {last_run_sentence(pipeline)}" if pipeline is not None and pipeline.last_run_at is not None else ""
        yield f"pipeline {state.name}: {state.state}{because}{last}"
        if pipeline is not None:
            yield from (f"pipeline {state.name}: {sentence}" for sentence in notice_sentences(pipeline))
    configured = {state.name for state in found.states}
    for pause in found.paused:
        if pause.pipeline not in configured:
            yield f"pipeline {pause.pipeline}: {pause_sentence(pause)}"


def _source_lines(found: Status) -> Iterator[str]:
    for source in found.health:
        yield f"source {source.pipeline}: {health_sentence(source)}"
    for notice in found.notices:
        since = f" (since {moment(notice.since)})" if notice.since is not None else ""
        yield f"{f'source {notice.pipeline}: ' if notice.pipeline else ''}{notice.sentence}{since}"


def health_sentence(source: SourceHealth) -> str:
    """Return the state of a source's connection, with its lag and its dropped messages."""
    facts: list[str] = []
    if source.connected_since is not None:
        facts.append(f"connected since {moment(source.connected_since)}")
    elif source.stays_connected:
        facts.append("not connected")
    if source.lag_seconds is not None:
        facts.append(f"{source.lag_seconds:.0f} s behind")
    if source.dropped:
        facts.append(f"{counted(source.dropped, 'message')} dropped since the start")
    return f"{', '.join(facts)}. {source.sentence}" if facts else source.sentence


def sink_line(sink: SinkStatus) -> str:
    """Return the counts of a sink. If the delivery is blocked, also return the reason, since when, and what to do."""
    line = f"sink {sink.address}: {counted(sink.entries, 'entry')}, {sink.pending} pending, {sink.rejected} rejected"
    line += f"; {_drift(sink, sink.drift)}" if sink.drift is not None else ""
    line += f"; {_unexplained(sink)}" if sink.unexplained else ""
    line += f"; {sink.doubt} It is compared and repaired after its sources have been read." if sink.doubt else ""
    if (blocker := sink.blocker) is not None and sink.pending:
        next_try = f"next try {moment(blocker.until)}"
        return f"{line}; {blocker.status} since {moment(blocker.since)}, {next_try}: {blocker.sentence}"
    attempt = sink.last_attempt
    return line + (f"; last request: {attempt.sentence}" if attempt and attempt.outcome != "accepted" else "")


def _unexplained(sink: SinkStatus) -> str:
    if not sink.read:
        return f"{counted(sink.unexplained, 'entry')} that no source has named yet; some sources have not been read yet"
    return f"{sink.unexplained} that no source explains ('ingestd drift' lists them)"


def _drift(sink: SinkStatus, checked: DriftStatus) -> str:
    if checked.at is None:
        return f"could not be read back {moment(checked.tried_at)}: {_failure(sink, checked)}"
    result = "no drift" if sink.unexplained else "as delivered"
    if checked.found:
        result = f"{checked.added} added, {checked.changed} changed, {checked.removed} removed by others"
    failed = f" (failed {moment(checked.tried_at)}: {_failure(sink, checked)})" if checked.failure else ""
    return f"read back {moment(checked.at)}: {result}{failed}"


def _failure(sink: SinkStatus, checked: DriftStatus) -> str:
    """Return why the sink could not be read back, for the middle of a line.

    If the delivery is blocked for the same reason, the line already has the sentence.
    """
    is_known = sink.pending and sink.blocker is not None and sink.blocker.sentence == checked.failure
    return "for the same reason" if is_known else checked.failure.removesuffix(".")


def last_run_sentence(pipeline: PipelineStatus) -> str:
    """Return the time and the counts of a pipeline's last run, or why it failed.

    If the run found its file or table unchanged, the counts belong to the last reading with records.
    """
    run = pipeline.last_run
    if pipeline.last_run_at is None or run is None:
        return "no run has ended yet"
    at = f"last run {moment(pipeline.last_run_at)}"
    if pipeline.failure:
        return f"{at} failed: {pipeline.failure}"
    if pipeline.unchanged:
        if pipeline.reading is None or pipeline.read_at is None:
            return f"{at}: unchanged"
        run, at = pipeline.reading, f"{at}: unchanged since {moment(pipeline.read_at)}"
    left = f" ({pipeline.rejected or 'none'} left)" if pipeline.rejected < run.rejected else ""
    within = f", {pipeline.within_deadband} within the dead-band of the sent value" if pipeline.within_deadband else ""
    return f"{at}: {counted(run.records, 'record')}, {describe_changes(run)}, {run.rejected} rejected{left}{within}"


def notice_sentences(pipeline: PipelineStatus) -> Iterator[str]:
    """Yield the notices on guesses and omissions in the last readings of a pipeline's files and tables, newest first."""
    for notice in pipeline.notices:
        yield f"{notice.partition}, read {moment(notice.at)}: {notice.sentence}"
    if more := pipeline.noticed - len(pipeline.notices):
        yield f"{counted(more, 'more notice')} of files or tables; 'ingestd why FILE' prints the notice of a file"
