"""The work of `/readyz` and `/metrics` over a growing state file, in steps of SQLite's virtual machine.

The pipeline has N partitions, each with an entry whose last value is within its dead-band, then 4N of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ingestd.daemon.assembly import assemble
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.web.event_counts import EventCounts
from ingestd.web.levels import check_readiness, read_levels
from tests.support.document_server import DocumentServer
from tests.support.work_counter import STEPS_COUNTED, Work, counting_connections

N: Final = 50
SLACK: Final = 500
"""Steps for the deeper trees of four times the rows."""


def _configuration(folder: Path, url: str) -> Configuration:
    settings: Mapping[str, object] = {
        "service": {"url": url, "api_key": "test-key"},
        "state": "state.db",
        "pipelines": [
            {
                "name": "pipe",
                "source": {"connector": "directory", "path": "drop", "settle_seconds": 0, "after": "keep"},
                "entries": {"key": "{part}", "value": "{mass}", "values": {"deadband": 0.5}},
                "sink": {"workspace": "Bench", "label": "Rig"},
            }
        ],
    }
    path = folder / "ingestd.yaml"
    path.write_text(json.dumps(settings))  # JSON is YAML
    return read_configuration(path, environment={}, cwd=folder)


def _write(folder: Path, count: int, fraction: int) -> None:
    for number in range(count):
        (folder / "new").write_text(f"part,mass\n{number},{number}.{fraction}\n")
        (folder / "new").replace(folder / "drop" / f"{number}.csv")


async def _steps(folder: Path, count: int, work: Work, url: str) -> int:
    (folder / "drop").mkdir(parents=True)
    configuration = _configuration(folder, url)
    with ThreadPoolExecutor(1) as executor:
        async with assemble(configuration, emit=lambda _: None) as assembly:
            for fraction in (1, 2):
                _write(folder, count, fraction)
                await assembly.supervisor.read_once()
            (status,) = assembly.mirror.status.pipelines()
            assert (status.partitions, status.within_deadband) == (count, count)
            work.reset()
            levels = await read_levels(assembly, EventCounts(), executor)
            steps = work.counts().get(STEPS_COUNTED, 0)
            assert check_readiness(levels).pipelines == {"pipe": "waiting"}
            return steps


async def test_levels_cost_the_same_for_four_times_the_partitions_and_entries_in_the_dead_band(tmp_path: Path) -> None:
    with DocumentServer() as server, counting_connections() as work:
        server.workspace("Bench")
        small = await _steps(tmp_path / "small", N, work, server.url)
        large = await _steps(tmp_path / "large", 4 * N, work, server.url)
    assert large <= small + SLACK, (small, large)
