"""The cost of one file and of idle pipelines does not depend on the number of other pipelines."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ingestd.daemon.assembly import Assembly, assemble
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.intake import PassReport, Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import PartitionAcknowledged
from tests.support.document_server import DocumentServer

DEADLINE_SECONDS = 60
HEAD = "service: {{url: '{url}', api_key: test-key}}\nstate: ingestd.db\npipelines:\n"
PIPELINE = """\
  - name: p{number}
    source: {{connector: directory, path: drop{number}, settle_seconds: 0, rescan_seconds: 3600}}
    entries: {{key: "{number}.{{part}}", value: "{{mass}}"}}
    sink: {{workspace: Bench, label: Sink {number}}}
"""


@dataclass
class Work:
    """Counts of work since the last `clear`, and a signal for each count that grew."""

    counts: Counter[str] = field(default_factory=Counter)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, name: str) -> None:
        with self.changed:
            self.counts[name] += 1
            self.changed.notify_all()

    def clear(self) -> None:
        with self.changed:
            self.counts.clear()

    def total(self, prefix: str) -> int:
        with self.changed:
            return sum(count for name, count in self.counts.items() if name.startswith(prefix))

    async def reached(self, prefix: str, count: int) -> None:
        def wait() -> bool:
            with self.changed:
                return self.changed.wait_for(lambda: self.total(prefix) >= count, DEADLINE_SECONDS)

        assert await asyncio.get_running_loop().run_in_executor(None, wait), self.counts


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count passes and acknowledgements by pipeline, and SQL statements."""
    found = Work()
    read, acknowledge = Reader.read_pass, Reader.acknowledge_partitions

    def read_pass(reader: Reader) -> PassReport:
        report = read(reader)
        found.add(f"pass {reader.pipeline}")
        return report

    def acknowledge_partitions(reader: Reader) -> int:
        done = acknowledge(reader)
        found.add(f"acknowledge {reader.pipeline}")
        return done

    class Counting(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            found.add("statement")
            return super().execute(sql, *parameters)

    monkeypatch.setattr(Reader, "read_pass", read_pass)
    monkeypatch.setattr(Reader, "acknowledge_partitions", acknowledge_partitions)
    monkeypatch.setattr(SqliteMirror, "open", partial(SqliteMirror.open, factory=Counting))
    return found


def configured(base: Path, url: str, pipelines: int) -> Configuration:
    base.mkdir()
    for number in range(pipelines):
        (base / f"drop{number}").mkdir()
        (base / f"drop{number}" / "first.csv").write_text("part,mass\nA,1\n")  # so that the sink exists
    path = base / "ingestd.yaml"
    path.write_text(HEAD.format(url=url) + "".join(PIPELINE.format(number=number) for number in range(pipelines)))
    return read_configuration(path, environment={}, cwd=base)


@asynccontextmanager
async def running(configuration: Configuration, work: Work) -> AsyncIterator[Assembly]:
    """Read and deliver; the block begins when the first file of every source is delivered."""

    def emit(event: Event) -> None:
        if isinstance(event, PartitionAcknowledged):
            work.add(f"completed {event.pipeline}")

    pipelines = len(configuration.settings.pipelines)
    async with assemble(configuration, emit=emit) as assembly:
        tasks = [asyncio.create_task(assembly.supervisor.run()), asyncio.create_task(assembly.dispatcher.run())]
        await work.reached("completed", pipelines)
        yield assembly
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def cost_of_files(base: Path, work: Work, pipelines: int) -> Counter[str]:
    with DocumentServer() as server:
        server.workspace("Bench")
        configuration = configured(base, server.url, pipelines)
        staged = base / "staged"
        async with running(configuration, work):
            work.clear()
            for number in range(10):
                staged.write_text(f"part,mass\nB{number},1\n")
                staged.rename(base / "drop3" / f"{number}.csv")
                await work.reached("completed p3", number + 1)
            return Counter(work.counts)


async def test_a_file_causes_work_in_its_own_pipeline_only(tmp_path: Path, work: Work) -> None:
    few = await cost_of_files(tmp_path / "few", work, 10)
    work.clear()
    many = await cost_of_files(tmp_path / "many", work, 200)
    for counts in (few, many):
        assert {name for name in counts if name.startswith(("pass", "acknowledge"))} == {"pass p3", "acknowledge p3"}
    # Two events of one file may wake for one pass or for two; work for each of the pipelines would be 20 times.
    assert many["statement"] <= 2 * few["statement"], (few, many)


async def test_idle_pipelines_share_a_few_threads_and_one_inotify_instance(tmp_path: Path, work: Work) -> None:
    before = len(daemon_threads())
    with DocumentServer() as server:
        server.workspace("Bench")
        async with running(configured(tmp_path / "many", server.url, 200), work):
            assert len(daemon_threads()) - before < 30
            assert open_files().count("anon_inode:inotify") == 1


def daemon_threads() -> list[str]:
    """Return the names of all threads except those that serve a connection of the test's HTTP server."""
    return [thread.name for thread in threading.enumerate() if "process_request" not in thread.name]


def open_files() -> list[str]:
    """Return the targets of the open descriptors of this process."""
    return [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]


async def test_passes_over_unchanged_sources_execute_no_statement(tmp_path: Path, work: Work) -> None:
    with DocumentServer() as server:
        server.workspace("Bench")
        async with assemble(configured(tmp_path / "site", server.url, 3), emit=lambda _: None) as assembly:
            supervisor = assembly.supervisor
            delivering = asyncio.create_task(assembly.dispatcher.run())
            await supervisor.read_once()
            await assembly.dispatcher.drain()
            await supervisor.acknowledge()
            delivering.cancel()
            await asyncio.wait([delivering])
            for _ in range(3):  # the first pass records that there is nothing to do
                work.clear()
                await supervisor.read_once()
                await supervisor.acknowledge()
            assert (work.total("pass"), work.total("acknowledge"), work.total("statement")) == (3, 3, 0)
            (tmp_path / "site" / "drop1" / "second.csv").write_text("part,mass\nB,2\n")
            await supervisor.read_once()
            assert work.total("statement") > 0
