"""The page that plots the histories of up to eight keys of a sink in one chart, with a table of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workspaced.core.timestamps import stamp
from workspaced.ui.history import history_records
from workspaced.ui.page_request import PageRefused, PageRequest
from workspaced.ui.recorded_series import chart_view, recorded_series
from workspaced.ui.renderer import PageView, page_view
from workspaced.ui.value_chart import ChartSample, Series, TimeRange, whole_range
from workspaced.ui.workspaces import SECTION

MOST_KEYS: Final = 8
_SHOWN_ROWS: Final = 100


async def show_plot(request: PageRequest) -> PageView:
    """Show the histories of the keys that the URL names."""
    workspace, sink, kept = await history_records(request)
    named = list(dict.fromkeys(key for text in request.several("key") if (key := text.strip())))
    series: list[Series] = []
    missing: dict[str, str] = {}
    for key in named[:MOST_KEYS]:
        try:
            series.append(await recorded_series(request, key, kept))
        except PageRefused as refused:
            if refused.status >= 500:
                raise
            missing[key] = refused.sentence
    keys = [one.key for one in series]
    view = chart_view(request, series, "workspaces", workspace["id"], "sinks", sink["visibleId"], "plot", key=keys)
    shown = view.chart.shown if view.chart else whole_range(series, now=0) if series else None
    rows, count = _rows(series, shown) if shown else ([], 0)
    return page_view(
        "plot.html",
        f"Plot of {sink['label']}",
        SECTION,
        workspace=workspace,
        sink=sink,
        kept=kept,
        keys=keys,
        missing=missing,
        left_out=named[MOST_KEYS:],
        most_keys=MOST_KEYS,
        view=view,
        rows=rows,
        row_count=count,
    )


def _rows(series: Sequence[Series], shown: TimeRange) -> tuple[list[tuple[str, list[ChartSample | None]]], int]:
    """Return the newest rows of the table of values in a range, and the number of all rows.

    A row has a time at which a key changed, and for each key its new value; None: this key did not change.
    """
    by_key = [{sample.at: sample for sample in one.within(shown)} for one in series]
    moments = sorted({at for samples in by_key for at in samples}, reverse=True)
    rows = [(stamp(at), [samples.get(at) for samples in by_key]) for at in moments[:_SHOWN_ROWS]]
    return rows, len(moments)
