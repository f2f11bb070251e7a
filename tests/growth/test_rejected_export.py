"""The work and the memory of an export of rejected records, by page and as a whole."""

from __future__ import annotations

import tracemalloc
from contextlib import nullcontext
from pathlib import Path

import pytest

from ingestd.commands.rejected_export import ExportFormat, RejectionExport
from ingestd.mirror.rejections import Selection
from tests.support.counted_pipeline import CountedPipeline
from tests.support.scripted_source import Row, Script
from tests.support.work_counter import STEPS_COUNTED, Growth, Work

N = 4_000
"""Several pages."""


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_page_of_an_export_costs_the_same_for_four_times_the_rejections(tmp_path: Path, form: ExportFormat) -> None:
    growth = Growth()
    for count in (N, 4 * N):
        with growth.at(count) as work:
            _export(tmp_path / str(count), count, form, work)
    growth.check()
    growth.check_peaks()


def test_an_export_begins_before_half_of_its_work_is_done(tmp_path: Path) -> None:
    work = Work()
    first = _export(tmp_path, N, "csv", work)
    assert 0 < first < work.counts()[STEPS_COUNTED] / 2


def _export(folder: Path, count: int, form: ExportFormat, work: Work) -> int:
    """Export rejections; keep the peaks of steps and memory of a page. Return the steps before the first text."""
    folder.mkdir(exist_ok=True)
    script = Script(batch_rows=1_000)
    rows: list[Row] = [{"k": "", "v": f"a value of row {number}"} for number in range(count)]
    script.write("p", rows)
    with work.uncounted():
        pipeline = CountedPipeline(folder, work, script=script)
        pipeline.read()
    export = RejectionExport(lambda: nullcontext(pipeline.mirror.status), Selection(), form)
    first = before = 0
    tracemalloc.start()
    for text in export.pages():
        steps = work.counts()[STEPS_COUNTED]
        work.peak("steps of a page", steps - before)
        first, before = first or (steps if text else 0), steps
    work.peak("bytes of memory", tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    pipeline.close()
    assert export.written == count
    return first
