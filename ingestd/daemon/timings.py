"""The timings of scheduled readings and drift checks, and the times of the last readings and checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ingestd.mirror.sqlite import Observer
from ingestd.schedule import Timing
from ingestd.settings.model import Settings
from ingestd.settings.schedule import OnChange


def reading_timings(settings: Settings) -> Mapping[str, Timing]:
    """Return the schedules by pipeline. Pipelines without a schedule are read when their source changes."""
    return {
        pipeline.name: pipeline.schedule
        for pipeline in settings.pipelines
        if not isinstance(pipeline.schedule, OnChange)
    }


def drift_timings(settings: Settings) -> Mapping[str, Timing]:
    """Return, by pipeline, the timings of periodic comparisons of the sink."""
    return {pipeline.name: pipeline.drift.every for pipeline in settings.pipelines if pipeline.drift.every is not None}


def last_runs(status: Observer) -> Mapping[str, float]:
    """Return when the last run of each pipeline began, in seconds since the epoch. Blocks."""
    return {name: run.started for name, run in status.pipeline_last_runs().items()}


def last_checks(status: Observer, pipelines: Iterable[str]) -> Mapping[str, float]:
    """Return the time of the last attempt to compare each pipeline's sink, in seconds since the epoch. Blocks."""
    return {name: min(one.tried_at for _, one in found) for name in pipelines if (found := status.drift_checks([name]))}
