"""The work of every operation of the service over a growing sink, in steps of SQLite's virtual machine.

The sink, the audit log and the log of deliveries have N rows, then 4N. An operation on one record must have constant work; one
that returns the whole sink may have proportional work.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.growing_service import SINK, fill, growing_service, growing_settings
from tests.support.interface_rows import ROWS, Row
from tests.support.sample_workspace import SampleWorkspace, create_sample_workspace
from tests.support.work_counter import LONGEST_WRITE, STEPS_COUNTED, Work, counting_connections
from workspaced.app import Application

N: Final = 1_500
SLACK: Final = 2_000
"""Steps that the service spends independently of a request. Skipping 3N more rows takes five times as many."""

WHOLE: Final = {"DS1", "DS2", "DS1 as CSV", "DS1 search without take"}
"""Operations that return every entry."""
PAGES: Final = (
    *(
        Row(id=f"DS1 {name}", method="GET", path=SINK, query={"take": "50", **query}, shape=None)
        for name, query in {
            "page": {},
            "page backwards": {"sortOrder": "DESC"},
            "page by key": {"sortedBy": "key"},
            "page by key backwards": {"sortedBy": "key", "sortOrder": "DESC"},
            "page as CSV": {"format": "csv"},
            "page after skip": {"skip": "500"},
            "search that finds": {"search": "7"},
            "search that finds nothing": {"search": "nothing", "sortedBy": "key"},
            "search by creation that finds nothing": {"search": "nothing"},
            "search of values that finds nothing": {"search": "nothing", "searchIn": "all"},
        }.items()
    ),
    Row(id="DS1 as CSV", method="GET", path=SINK, query={"format": "csv"}, shape=None),
    Row(id="DS1 search without take", method="GET", path=SINK, query={"search": "k"}, shape=None),
    Row(id="audit log", method="GET", path="/v1/audit-log", query={"take": "10"}, shape=None),
    Row(
        id="audit log of an action",
        method="GET",
        path="/v1/audit-log",
        query={"take": "10", "action": "webhook.*"},
        shape=None,
    ),
    Row(id="deliveries", method="GET", path="/v1/webhooks/{webhook}/deliveries", query={"take": "10"}, shape=None),
    Row(
        id="failed deliveries",
        method="GET",
        path="/v1/webhooks/{webhook}/deliveries",
        query={"take": "10", "status": "failed"},
        shape=None,
    ),
    Row(
        id="DS11 of a hundred",
        method="POST",
        path=f"{SINK}/mass",
        json=[{"key": f"k{index * 7:06d}", "value": "2"} for index in range(100)],
        shape=None,
    ),
)
# Deletions are last, and containers after their content.
_LAST: Final = ("DS10", "CS1", "BL4", "DS7", "WH4", "WS4")
OPERATIONS: Final = (
    # A block that is the root cannot be deleted, which comes later.
    *(
        dataclasses.replace(row, json={"label": "New"}) if row.id == "WS5" else row
        for row in ROWS
        if row.id not in _LAST
    ),
    *PAGES,
    *sorted((row for row in ROWS if row.id in _LAST), key=lambda row: _LAST.index(row.id)),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The steps of one operation with its deferred work, and those of its longest write transaction."""

    total: int
    longest_write: int


async def _jobs_done(app: Application) -> None:
    """Wait for jobs that the requests have caused; if they ran here, their steps would share transactions."""
    async with asyncio.timeout(60):
        for job in app._jobs:
            while await app._store.read_brief(job._pending):  # noqa: ASYNC110  a job sends no signal when it is done
                await asyncio.sleep(0.005)


def _placed(value: Any, sample: SampleWorkspace) -> Any:
    """Return ``value`` with the ids of the sample in its placeholders."""
    if isinstance(value, str):
        return value.format(**dataclasses.asdict(sample)) if "{" in value else value
    if isinstance(value, dict):
        return {name: _placed(one, sample) for name, one in value.items()}
    return [_placed(one, sample) for one in value] if isinstance(value, list) else value


def _cost(steps: Work) -> Cost:
    return Cost(
        total=steps.counts().get(STEPS_COUNTED, 0),
        longest_write=steps.peaks().get(LONGEST_WRITE, 0),
    )


async def _measured(data: Path, rows: int, steps: Work) -> dict[str, Cost]:
    found: dict[str, Cost] = {}
    async with growing_service(data) as (app, http):
        sample = await create_sample_workspace(http)
        await fill(http, growing_settings(data), sample, rows)
        for operation in OPERATIONS:
            await app.run_maintenance()
            steps.reset()
            response = await http.request(
                operation.method,
                _placed(operation.path, sample),
                json=_placed(operation.json, sample),
                params=_placed(operation.query, sample) or None,
            )
            assert response.is_success, (operation.id, response.text)
            if operation.id in _LAST:
                await _jobs_done(app)
            found[operation.id] = _cost(steps)
        steps.reset()
        levels = await app.levels()
        assert levels.reached
        found["metrics"] = dataclasses.replace(_cost(steps), longest_write=0)
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Cost, Cost]]:
    with counting_connections() as steps:
        small, large = (
            asyncio.run(_measured(tmp_path_factory.mktemp("growth") / "data", rows, steps)) for rows in (N, 4 * N)
        )
    return {name: (small[name], large[name]) for name in small}


def test_all_of_the_documented_operations_are_measured() -> None:
    assert {row.id for row in ROWS} <= {row.id for row in OPERATIONS}
    assert len({row.id for row in ROWS}) == 32


@pytest.mark.parametrize("name", [*(row.id for row in OPERATIONS), "metrics"])
def test_the_work_of_an_operation_does_not_grow_with_the_stored_data(
    measured: Mapping[str, tuple[Cost, Cost]], name: str
) -> None:
    small, large = measured[name]
    removing = name in {"DS7", "WH4"}
    if name in WHOLE or removing:
        assert large.total <= 4.6 * small.total, (small, large)
    else:
        assert large.total <= 1.25 * small.total + SLACK, (small, large)
    # A job works in transactions of bounded size, which both sinks fill.
    assert large.longest_write <= 1.25 * small.longest_write + SLACK, (small, large)


@pytest.fixture(scope="module")
def bulk_for_webhooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cost, Cost]:
    """Send a bulk with 3 webhooks, and with 12, and wait for its deferred work."""

    async def bulk(data: Path, webhooks: int, steps: Work) -> Cost:
        async with growing_service(data) as (app, http):
            sample = await create_sample_workspace(http)
            for _ in range(webhooks):
                made = await http.post("/v1/webhooks", json={"url": "https://receiver.invalid/", "dataEvents": ["*"]})
                assert made.status_code == 201, made.text
            await app.run_maintenance()
            steps.reset()
            entries = [{"key": f"k{index:06d}", "value": "1"} for index in range(1_000)]
            sink = SINK.format(workspace=sample.workspace, sink=sample.sink)
            response = await http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
            assert response.status_code == 200, response.text
            await _jobs_done(app)
            return _cost(steps)

    with counting_connections() as steps:
        few, many = (asyncio.run(bulk(tmp_path_factory.mktemp("growth") / "data", count, steps)) for count in (3, 12))
    return few, many


def test_no_write_transaction_grows_with_the_number_of_webhooks(bulk_for_webhooks: tuple[Cost, Cost]) -> None:
    few, many = bulk_for_webhooks
    assert many.total <= 4.6 * few.total, (few, many)
    assert many.longest_write <= 1.25 * few.longest_write + SLACK, (few, many)
