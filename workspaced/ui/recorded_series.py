"""Charts of the histories of keys: the data from the API, the range in the URL, and the links to other ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from workspaced.core.clock import now_ms
from workspaced.ui.addresses import address
from workspaced.ui.moments import milliseconds, moment_ms, moment_text
from workspaced.ui.page_request import ApiResponse, PageRefused, PageRequest
from workspaced.ui.value_chart import ChartSample, Series, TimeRange, ValueChart, quantity_of, value_chart

_CHARTED: Final = 1_000
"""The maximum number of changes that a sink can keep of each entry."""
_SHOWN_OF_TEXT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartView:
    """A chart on a page. ``chart`` None: each key has no number, or numbers in several units.

    ``action``: the URL of the page without its query. ``fields``: the query without the range. ``links``: the URLs of other
    ranges, by the names in `ValueChart.others` and by ``whole``. ``begin`` and ``end``: the moments in the input fields.
    ``wrong``: a sentence that says why the range of the URL is not shown; empty: this range is shown.
    """

    chart: ValueChart | None
    action: str
    fields: Sequence[tuple[str, str]]
    links: Mapping[str, str]
    begin: str
    end: str
    wrong: str


def entry_history_path(request: PageRequest, key: str) -> tuple[str, ...]:
    """Return the segments of the path of an entry's history in the API, below ``/v1``."""
    names = request.names
    return ("workspace", names["workspace"], "data-sink-history", names["sink"], "entry", key)


async def recorded_series(request: PageRequest, key: str, kept: Mapping[str, Any]) -> Series:
    """Return the history of a key with all kept changes. ``kept`` is the record of the sink's history.

    Raises:
        PageRefused: the API responds with an error, for example because no present or former entry of the key is known.
    """
    found = await request.get(*entry_history_path(request, key), take=str(_CHARTED))
    if found.value:
        return series_of(key, found, kept)
    names = request.names
    entry = (await request.get("workspace", names["workspace"], "data-sink", names["sink"], key)).record
    begun = kept["knownFrom"] or entry["updatedAt"]
    return Series(key=key, before=_sample(begun, entry), samples=[])


def series_of(key: str, found: ApiResponse, kept: Mapping[str, Any]) -> Series:
    """Return the history of a key. ``found`` has the kept changes of the key, at least one change."""
    changes = found.value
    oldest = changes[-1]
    is_known = oldest["before"] and kept["knownFrom"] and not (found.next_cursor or oldest["olderDropped"])
    return Series(
        key=key,
        before=_sample(min(kept["knownFrom"], oldest["time"]), oldest["before"]) if is_known else None,
        samples=[_sample(change["time"], change["after"]) for change in reversed(changes)],
    )


def _sample(time: str, state: Mapping[str, Any] | None) -> ChartSample:
    value = state["value"] if state else None
    if not value:
        absent = "no entry" if state is None else "null" if value is None else "empty text"
        return ChartSample(milliseconds(time), absent, None, is_stored=False)
    return ChartSample(milliseconds(time), value[:_SHOWN_OF_TEXT], quantity_of(value))


def chart_view(request: PageRequest, series: Sequence[Series], *segments: str, **fields: Sequence[str]) -> ChartView:
    """Return the chart of the page at ``/ui/<segments>``. The URL names the range; ``fields`` are its other parameters."""
    since, until = request.query.get("from", ""), request.query.get("to", "")
    now, wanted, wrong = now_ms(), None, ""
    try:
        if since or until:
            wanted = TimeRange(moment_ms(since) if since else 0, moment_ms(until) if until else now)
            if wanted.begin >= wanted.end:
                wanted, wrong = None, "The beginning of the chart must be before its end."
    except PageRefused as refused:
        wrong = refused.sentence
    chart = value_chart(series, wanted, now=now)
    links = {name: _range_link(one, *segments, **fields) for name, one in chart.others.items()} if chart else {}
    if chart and chart.is_part:
        links["whole"] = address(*segments, **fields)
    return ChartView(
        chart=chart,
        action=address(*segments),
        fields=[(name, value) for name, values in fields.items() for value in values],
        links=links,
        begin=since if wrong or not chart else moment_text(chart.shown.begin),
        end=until if wrong or not chart else moment_text(chart.shown.end),
        wrong=wrong,
    )


def _range_link(shown: TimeRange, *segments: str, **fields: Sequence[str]) -> str:
    query = {"from": moment_text(shown.begin), "to": moment_text(shown.end)}
    return address(*segments, **fields, **query)
