"""The flow of a pipeline from its source to its sink, as steps for the page of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ingestd.web.event_counts import Activity


class FlowStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the flow. ``count``: how many ``unit`` there are now, or were in the last 24 hours if there is a ``series``.

    ``series``: the counts of the half hours. ``per_hour``: the average per hour. ``is_at_least``: the true number is larger
    than ``count``. ``problem``: such as ``1 rejected``, or empty. ``link``: the page that shows the problem, or empty.
    """

    title: str
    count: int
    unit: str
    series: Sequence[int] = ()
    per_hour: float | None = None
    is_at_least: bool = False
    problem: str = ""
    link: str = ""


_SHORTEST_HOURS = 0.5
"""The minimum time for an average; an average over less time would be a guess."""


def steps_of(
    pipeline: str,
    activity: Activity,
    *,
    partitions: int,
    waiting: int,
    rejected: int,
    held: int,
    pending: int,
    entries: int,
    entries_at_most: int,
) -> Iterator[FlowStep]:
    """Yield the steps: source, reading, mapping, delivery, sink.

    ``partitions``: the number of files or tables that the source has had. The current numbers are ``waiting`` (files that are
    not read in their current state), ``rejected``, ``held`` (runs) and ``pending`` (entries). ``entries``: the number of
    entries of the sink, counted up to ``entries_at_most`` + 1.
    """
    page = f"/pipelines/{pipeline}"
    yield FlowStep(
        title="Source",
        count=partitions,
        unit="file or table" if partitions == 1 else "files or tables",
        problem=f"{waiting} waiting" if waiting else "",
        link=f"{page}#waiting",
    )
    yield _work("Read", ("record", "records"), activity.records, activity.hours)
    yield _work(
        "Mapped",
        ("entry changed", "entries changed"),
        activity.entries,
        activity.hours,
        problem=f"{rejected} rejected" if rejected else "",
        link=f"/rejected?pipeline={pipeline}",
    )
    yield _work(
        "Delivered",
        ("entry", "entries"),
        activity.delivered,
        activity.hours,
        problem=f"{held} held" if held else f"{pending} pending" if pending else "",
        link=f"{page}#held" if held else "",
    )
    yield FlowStep(
        title="Sink",
        count=min(entries, entries_at_most),
        unit="entry" if entries == 1 else "entries",
        is_at_least=entries > entries_at_most,
    )


def _work(
    title: str, unit: tuple[str, str], series: Sequence[int], hours: float, *, problem: str = "", link: str = ""
) -> FlowStep:
    total = sum(series)
    return FlowStep(
        title=title,
        count=total,
        unit=unit[total != 1],
        series=series,
        per_hour=total / hours if hours >= _SHORTEST_HOURS else None,
        problem=problem,
        link=link,
    )
