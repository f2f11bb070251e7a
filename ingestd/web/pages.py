"""The contents of the pages. Each method reads the same facts as a command, and returns a template with its values."""

from __future__ import annotations

import asyncio
import glob
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from ingestd.commands.rejected_export import RejectionExport
from ingestd.commands.status import observe
from ingestd.commands.trace import trace_entry
from ingestd.commands.why import why
from ingestd.core.address import SinkAddress
from ingestd.core.errors import IngestdError, NotRolledBack
from ingestd.core.pipeline_state import PipelineState, State, StateReason
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.pipeline_states import SourceNotices, other_failures
from ingestd.daemon.source_passes import SourcePasses
from ingestd.daemon.status import Status, compile_status
from ingestd.daemon.status_text import health_sentence, last_run_sentence, notice_sentences
from ingestd.intake.connector_reports import list_waiting
from ingestd.mirror.drift import START
from ingestd.mirror.rejections import Selection
from ingestd.mirror.reports import PipelineStatus
from ingestd.mirror.rollback import RunSelection
from ingestd.sdk import Connector, WaitingReason
from ingestd.settings.model import PipelineSettings
from ingestd.standby.status import StandbyStatus
from ingestd.web.attention import MOST, count_states, find_attention
from ingestd.web.configuration_view import file_state, setting_groups
from ingestd.web.event_counts import Activity
from ingestd.web.file_life import life_of
from ingestd.web.flow import steps_of

_PAGE = 50
_RUNS = 50
_WAITING = 200
_UNEXPLAINED = 50


class PageMissing(IngestdError):
    """There is no page for this path."""


class PageContent(msgspec.Struct, frozen=True, kw_only=True):
    """A template and its values. ``section``: the current item of the navigation."""

    template: str
    title: str
    section: str
    values: Mapping[str, Any]


class PipelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the overview. ``sentence``: the reason for the state, or the last run. ``notices``: sentences about the source.

    ``next_run_at``: when the schedule is due, in seconds since the epoch; None: the pipeline is read when its source changes.
    """

    name: str
    source: str
    sink_name: str
    pending: int
    state: State
    sentence: str
    reasons: tuple[StateReason, ...]
    rejected: int
    last_run_at: float | None
    complete_at: float | None
    waiting: Mapping[WaitingReason, int]
    notices: tuple[str, ...]
    next_run_at: float | None
    activity: Activity


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the rows of pipelines. The cost of a read does not depend on the number of entries.

    All members except ``status`` and ``pending`` are by pipeline. ``notices``: sentences about the source. ``waiting``: the
    number of waiting files by reason. ``next_runs``: seconds since the epoch.
    """

    status: Status
    pending: Mapping[SinkAddress, int]
    states: Mapping[str, PipelineState]
    pipelines: Mapping[str, PipelineStatus]
    notices: Mapping[str, Sequence[str]]
    waiting: Mapping[str, Mapping[WaitingReason, int]]
    next_runs: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContents:
    """Reads the pages of one daemon. All methods block.

    ``current`` returns the configuration in use; a page calls it once, because a reload replaces the configuration. ``sources``
    returns the known facts about the sources. ``waiting`` returns the connectors, which list their waiting files. ``next_runs``
    returns when the schedule of each pipeline is due (seconds since the epoch). ``activity`` returns the work of the last 24
    hours for a pipeline and its sink. ``standby`` returns which daemon is active; None without `--standby`.
    ``entries_at_most``: the limit for counting the entries of a sink.
    """

    current: Callable[[], Configuration]
    pid: int
    sources: Callable[[], SourceNotices]
    passes: SourcePasses
    waiting: Callable[[], Mapping[str, Connector]]
    next_runs: Callable[[], Mapping[str, float]]
    activity: Callable[[str, str], Activity]
    standby: Callable[[], StandbyStatus | None] = lambda: None
    entries_at_most: int = 10_000

    def overview(self, *, state: str = "") -> PageContent:
        """Return the conditions that a person must handle, and the pipelines in a state; ``state`` empty: all pipelines."""
        configuration = self.current()
        found = self._state(configuration)
        pipelines = configuration.settings.pipelines
        rows = [self._row(one, found) for one in pipelines if state in {"", found.states[one.name].state}]
        attention = find_attention(found.status.states, found.status.held)
        others = other_failures(found.status.failed_parts, ((one.name, one.sink) for one in pipelines))
        standby = self.standby()
        values = {
            "standby": standby,
            "status": found.status,
            "own_notices": (*others, *found.notices.get("", ()), *(standby.failures if standby is not None else ())),
            "attention": attention[:MOST],
            "more_attention": max(0, len(attention) - MOST),
            "counts": list(count_states(found.status.states)),
            "total": len(found.status.states),
            "state": state,
            "rows": rows,
        }
        return PageContent(template="overview.html", title="Pipelines", section="pipelines", values=values)

    def pipeline(self, name: str) -> PageContent:
        """Return one pipeline with its runs and its waiting files.

        Raises:
            PageMissing: there is no such pipeline.
        """
        configuration = self.current()
        found = next((one for one in configuration.settings.pipelines if one.name == name), None)
        if found is None:
            raise PageMissing(f"There is no pipeline {name}.")
        state = self._state(configuration)
        with observe(configuration) as mirror:
            runs = mirror.past_runs(name, limit=_RUNS)
            entries = mirror.entries_of(found.sink, limit=self.entries_at_most + 1)
        source = self.waiting().get(name)
        listed = list_waiting(name, source, _WAITING + 1) if source is not None else []
        waiting = listed if isinstance(listed, list) else []
        held = [one for one in state.status.held if one.pipeline == name]
        row = self._row(found, state)
        flow = steps_of(
            name,
            row.activity,
            partitions=state.pipelines[name].partitions if name in state.pipelines else 0,
            waiting=sum(row.waiting.values()),
            rejected=row.rejected,
            held=len(held),
            pending=row.pending,
            entries=entries,
            entries_at_most=self.entries_at_most,
        )
        values = {
            "row": row,
            "flow": list(flow),
            "last_run": last_run_sentence(state.pipelines[name]) if name in state.pipelines else "never ran",
            "runs": runs,
            "waiting": waiting[:_WAITING],
            "more_waiting": len(waiting) > _WAITING,
            "unlisted": "" if isinstance(listed, list) else listed.sentence,
            "held": held,
        }
        return PageContent(template="pipeline.html", title=name, section="pipelines", values=values)

    def file(self, name: str) -> PageContent:
        """Return the explanation of `ingestd why` for a file or a table, with its history and the facts of its last reading."""
        configuration = self.current()
        found = asyncio.run(why(configuration, name, cwd=configuration.base)) if name else []
        explained = []
        with observe(configuration) as mirror:
            held = {(one.pipeline, one.partition): one.run for one in mirror.held_runs()}
            for one in found:
                receipt = mirror.history(one.pipeline, one.partition)
                run = held.get((one.pipeline, one.partition))
                explained.append((one, receipt, life_of(one, receipt, is_held=run is not None), run))
        return PageContent(
            template="file.html",
            title=name or "Why a file waits",
            section="files",
            values={"name": name, "explained": explained},
        )

    def drift(self, pipeline: str, *, after: tuple[int, str] = START) -> PageContent:
        """Return the last checks of the sinks of a pipeline, or of all pipelines, and a page of the keys that differ."""
        configuration = self.current()
        names = [one.name for one in configuration.settings.pipelines]
        chosen = [name for name in names if name == pipeline or not pipeline]
        with observe(configuration) as mirror:
            page = mirror.drift(chosen, after=after, limit=_PAGE)
            unexplained = mirror.unexplained(chosen, limit=_UNEXPLAINED)
            checks = mirror.drift_checks(chosen)
        values = {
            "pipeline": pipeline,
            "pipelines": names,
            "checks": checks,
            "findings": page.findings,
            "next": page.next,
            "is_later": after != START,
            "unexplained": unexplained.entries,
            "more_unexplained": unexplained.next is not None,
        }
        return PageContent(
            template="drift.html", title=f"{pipeline} · Drift" if pipeline else "Drift", section="drift", values=values
        )

    def pipeline_names(self, name: str) -> tuple[str, ...]:
        """Return only ``name``; if it is empty, return the names of all pipelines.

        Raises:
            PageMissing: there is no such pipeline.
        """
        names = tuple(one.name for one in self.current().settings.pipelines)
        if name and name not in names:
            raise PageMissing(f"There is no pipeline {name}.")
        return (name,) if name else names

    def configuration(self) -> PageContent:
        """Return the settings in use, and the results of a check of the file on disk."""
        running = self.current()
        values = {
            "path": str(running.path),
            "file": file_state(running),
            "groups": setting_groups(running.settings),
        }
        return PageContent(template="configuration.html", title="Configuration", section="configuration", values=values)

    def trace(self, key: str, *, steps: bool) -> PageContent:
        """Return the output of `ingestd trace` for a key."""
        configuration = self.current()
        entries = trace_entry(configuration, key, steps=steps) if key else []
        reasons: dict[tuple[str, str], str] = {}
        if any(one.origin is not None and one.origin.rejected for one in entries):
            with observe(configuration) as mirror:
                found = mirror.selected(Selection(key=glob.escape(key)), after=0, limit=_PAGE)
            reasons = {(one.workspace, one.sink): one.reason for one in found}
        values = {"key": key, "entries": entries, "steps": steps, "reasons": reasons}
        return PageContent(
            template="trace.html", title=f"{key} · Trace" if key else "Trace a key", section="trace", values=values
        )

    def rejected(self, selection: Selection, *, after: int) -> PageContent:
        """Return a page of rejections, the oldest first."""
        configuration = self.current()
        with observe(configuration) as mirror:
            total = mirror.count(selection)
            found = mirror.selected(selection, after=after, limit=_PAGE + 1)
        values = {
            "selection": selection,
            "total": total,
            "after": after,
            "rejections": found[:_PAGE],
            "next": found[_PAGE - 1].id if len(found) > _PAGE else None,
            "pipelines": [one.name for one in configuration.settings.pipelines],
        }
        return PageContent(
            template="rejected.html",
            title=f"{selection.pipeline} · Rejected" if selection.pipeline else "Rejected",
            section="rejected",
            values=values,
        )

    def export(self, selection: Selection) -> RejectionExport:
        """Return the export of `ingestd rejected export` as CSV. The export reads nothing before its first page."""
        return RejectionExport(partial(observe, self.current()), selection, "csv")

    def held_runs(self) -> PageContent:
        """Return the held runs."""
        with observe(self.current()) as mirror:
            runs = mirror.held_runs()
        return PageContent(template="held_runs.html", title="Held runs", section="held", values={"runs": runs})

    def held_run(self, number: int, *, after: str) -> PageContent:
        """Return one held run with a page of its differences.

        Raises:
            PageMissing: the run is not held.
        """
        with observe(self.current()) as mirror:
            run = next((one for one in mirror.held_runs() if one.run == number), None)
            if run is None:
                raise PageMissing(f"Run {number} is not held. It was decided, or a later reading has replaced it.")
            differences = mirror.held_differences(number, after=after, limit=_PAGE + 1)
        values = {
            "run": run,
            "after": after,
            "differences": differences[:_PAGE],
            "next": differences[_PAGE - 1].key if len(differences) > _PAGE else None,
        }
        return PageContent(
            template="held_run.html", title=f"Run {number} of {run.partition} · Held", section="held", values=values
        )

    def rollback(self, number: int) -> PageContent:
        """Return the planned changes of the rollback of a run. The plan uses only the state file; the sink is not read.

        Raises:
            PageMissing: the run can't be rolled back.
        """
        with observe(self.current()) as mirror:
            try:
                plan = mirror.rollback_plan(RunSelection(run=number))
            except NotRolledBack as error:
                raise PageMissing(str(error)) from error
        values = {"run": plan.runs[0], "plan": plan}
        return PageContent(
            template="rollback.html",
            title=f"Roll back run {number} of {plan.runs[0].pipeline}",
            section="pipelines",
            values=values,
        )

    def _state(self, configuration: Configuration) -> _State:
        sources = self.sources()
        with observe(configuration) as mirror:
            status = compile_status(mirror, configuration, pid=self.pid, sources=sources, with_sinks=False)
            pending = {one.address: one.pending for one in mirror.backlog()}
        notices: defaultdict[str, list[str]] = defaultdict(list)
        for source in status.health:
            notices[source.pipeline].append(health_sentence(source))
        for notice in status.notices:
            notices[notice.pipeline].append(notice.sentence)
        return _State(
            status=status,
            pending=pending,
            states={one.name: one for one in status.states},
            pipelines={one.name: one for one in status.pipelines},
            notices=notices,
            waiting=sources.waiting,
            next_runs=self.next_runs(),
        )

    def _row(self, pipeline: PipelineSettings, state: _State) -> PipelineRow:
        found = state.pipelines.get(pipeline.name)
        pending = state.pending.get(pipeline.sink, 0)
        notices = (
            *state.notices.get(pipeline.name, ()),
            *(notice_sentences(found) if found is not None else ()),
        )
        rejected = found.rejected if found is not None else 0
        derived = state.states[pipeline.name]
        last_run = last_run_sentence(found) if found is not None else ""
        return PipelineRow(
            name=pipeline.name,
            source=pipeline.source.connector,
            sink_name=str(pipeline.sink),
            pending=pending,
            state=derived.state,
            sentence=derived.reasons[0].sentence if derived.reasons else last_run,
            reasons=derived.reasons,
            rejected=rejected,
            last_run_at=found.last_run_at if found is not None else None,
            complete_at=self.passes.complete_at(pipeline.name),
            waiting=state.waiting.get(pipeline.name, {}),
            notices=notices,
            next_run_at=state.next_runs.get(pipeline.name),
            activity=self.activity(pipeline.name, str(pipeline.sink)),
        )


def selection_of(fields: Mapping[str, str], ids: Sequence[int] = ()) -> Selection:
    """Return the selection that a form or a query describes."""
    names = ("pipeline", "reason", "file", "key")
    return Selection(ids=tuple(ids), **{name: fields.get(name, "")[:1_000] for name in names})
