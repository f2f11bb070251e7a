"""After a reload, the state file and the sinks are the same as after a restart with that configuration."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Self

import pytest
from ruamel.yaml import YAML

from ingestd.core.errors import MirrorFull
from ingestd.daemon.assembly import Assembly, assemble
from ingestd.daemon.configuration import Configuration, read_configuration
from ingestd.daemon.timings import reading_timings
from ingestd.intake import PassReport, Reader
from ingestd.process.change_signal import ChangeSignal
from ingestd.telemetry import Event
from tests.support.document_server import DocumentServer

DEADLINE_SECONDS = 60
SINKS = ("Sink 0", "Sink 1")
FOLDERS = ("drop0", "drop1", "drop2")

STATE = """
SELECT 'pipeline', name, active, whole FROM pipeline
UNION ALL SELECT 'partition', l.name, p.name, p.retired FROM partition p JOIN pipeline l ON l.id = p.pipeline
UNION ALL SELECT 'entry', k.name || ' ' || e.key, coalesce(e.value, '') || ' ' || e.removed, l.name
  FROM entry e JOIN sink k ON k.id = e.sink LEFT JOIN partition p ON p.id = e.partition LEFT JOIN pipeline l ON l.id = p.pipeline
UNION ALL SELECT 'rejected', l.name || ' ' || r.subject, coalesce(r.key, ''), r.reason
  FROM rejected r JOIN partition p ON p.id = r.partition JOIN pipeline l ON l.id = p.pipeline
"""
"""What the mirror holds, without ids, times and runs."""


class Passes:
    """The number of passes over each source since the last `forget`, and a signal for each of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.ended = ChangeSignal()

    def note(self, pipeline: str) -> None:
        self.counts[pipeline] += 1
        self.ended.notify()

    async def wait_for(self, names: Sequence[str], after: Counter[str]) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self.ended.wait_until(lambda: all(self.counts[name] > after[name] for name in names))


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    found = Passes()
    read = Reader.read_pass

    def read_pass(reader: Reader) -> PassReport:
        report = read(reader)
        found.note(reader.pipeline)
        return report

    monkeypatch.setattr(Reader, "read_pass", read_pass)
    return found


class Site:
    """A folder with sources and a state file, and a service; a daemon runs here, or several one after the other."""

    def __init__(self, base: Path, passes: Passes) -> None:
        self.base = base
        self.passes = passes
        self.configuration: Configuration | None = None
        self.read_at_start: list[str] = []
        base.mkdir()
        for number, folder in enumerate(FOLDERS):
            (base / folder).mkdir()
            rows = "".join(f"P{row},{number}.{row}\n" for row in range(4))
            # With a rejected record, entries without a source are not removed.
            (base / folder / "parts.csv").write_text("part,mass\n" + rows + ("broken\n" if number == 2 else ""))
        self.server = DocumentServer()

    def __enter__(self) -> Self:
        self.server.__enter__()
        self.server.workspace("Bench")
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__(None, None, None)

    def write(self, pipelines: Sequence[dict[str, Any]], limits: dict[str, Any]) -> Configuration:
        path = self.base / "ingestd.yaml"
        service = {"url": self.server.url, "api_key": "test-key", **limits}
        with path.open("w") as file:
            YAML(typ="safe").dump({"service": service, "state": "ingestd.db", "pipelines": list(pipelines)}, file)
        self.configuration = read_configuration(path, environment={}, cwd=self.base)
        return self.configuration

    @asynccontextmanager
    async def daemon(self) -> AsyncIterator[Assembly]:
        """Run the parts of a daemon; comparisons of sinks run only in `deliver_all`, so that their end is known."""

        def emit(_: Event) -> None:
            """Log nothing."""

        assert self.configuration is not None
        async with AsyncExitStack() as stack:
            assembly = await stack.enter_async_context(assemble(self.configuration, emit=emit))
            # A scheduled pipeline is read at a start only if it never ran.
            ran = {one.name for one in assembly.mirror.status.pipelines() if one.last_run_at is not None}
            scheduled = self.scheduled()
            names = [reader.pipeline for reader in assembly.readers]
            self.read_at_start = [name for name in names if name not in scheduled or name not in ran]
            tasks = [
                asyncio.create_task(run())
                for run in (
                    assembly.supervisor.run,
                    assembly.dispatcher.run,
                    assembly.schedule.run,
                    assembly.reloader.run,
                )
            ]
            yield assembly
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result

    async def deliver_all(self, assembly: Assembly) -> None:
        """Deliver everything, compare the sinks that are ready, and deliver what the comparison changed."""
        names = [reader.pipeline for reader in assembly.readers]

        async def read(again: Sequence[str]) -> None:
            before = Counter(self.passes.counts)
            for name in again:
                assembly.supervisor.wake(name)
            await self.passes.wait_for(again, before)

        async with asyncio.timeout(DEADLINE_SECONDS):
            await assembly.dispatcher.drain()
            await assembly.ownership.compare(names, read=read)
            await assembly.dispatcher.drain()

    def scheduled(self) -> list[str]:
        """Return the pipelines with a schedule."""
        assert self.configuration is not None
        return list(reading_timings(self.configuration.settings))

    def content(self) -> list[str]:
        """Return what the state file and the service hold."""
        with closing(sqlite3.connect(f"file:{self.base / 'ingestd.db'}?mode=ro", uri=True)) as connection:
            rows = [str(row) for row in connection.execute(STATE)]
        with_label = [label for label in SINKS if self.server.store.by_label(label)]
        served = [f"{label} {key} {value}" for label in with_label for key, value in self.server.values(label).items()]
        return sorted(rows) + sorted(served)


def pipeline(random_numbers: random.Random, name: str) -> dict[str, Any]:
    """Return a random pipeline. A and B can write the same keys."""
    key = "{part}" if name in {"a", "b"} and random_numbers.random() < 0.8 else name + ".{part}"
    return {
        "name": name,
        "source": {
            "connector": "directory",
            "path": random_numbers.choice(FOLDERS),
            "settle_seconds": 0,
            "rescan_seconds": 3600,
        },
        "entries": {"key": key, "value": random_numbers.choice(("{mass}", "x{mass}"))},
        "sink": {"workspace": "Bench", "label": random_numbers.choices(SINKS, weights=(4, 1))[0]},
        "unexplained": random_numbers.choice(("own", "remove")),
        **({"schedule": {"every": "1h"}} if random_numbers.random() < 0.2 else {}),
    }


def change(random_numbers: random.Random, before: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the pipelines after one change: one is added, removed, renamed or changed.

    Only one changes, because the order of readings decides which of two new pipelines owns a key.
    """
    after = dict(before)
    slot = random_numbers.choice(("a", "b", "c"))
    if slot not in after:
        after[slot] = pipeline(random_numbers, slot)
        return after
    kind = random_numbers.choice(("remove", "remove", "rename", "change", "change"))
    if kind == "remove" and len(after) > 1:
        del after[slot]
    elif kind == "rename":
        name = after[slot]["name"]
        after[slot] = after[slot] | {"name": name.removesuffix("-new") if name.endswith("-new") else f"{name}-new"}
    else:
        other = pipeline(random_numbers, slot)
        what = random_numbers.choice(("source", "entries", "sink", "unexplained"))
        after[slot] = after[slot] | {what: other[what]}
    return after


@pytest.mark.parametrize("seed", range(16))
async def test_a_reload_leaves_what_a_restart_leaves(tmp_path: Path, passes: Passes, seed: int) -> None:
    random_numbers = random.Random(seed)
    pipelines = {slot: pipeline(random_numbers, slot) for slot in random_numbers.sample(["a", "b", "c"], 1)}
    history: list[list[dict[str, Any]]] = []
    limits: list[dict[str, Any]] = []
    for _ in range(8):
        history.append(list(pipelines.values()))
        limits.append(
            {"requests_at_most": random_numbers.choice((1, 8)), "update_with": random_numbers.choice(("mass", "patch"))}
        )
        pipelines = change(random_numbers, pipelines)

    expected = []
    with Site(tmp_path / "restarted", passes) as site:
        for configured, service in zip(history, limits, strict=True):
            site.write(configured, service)
            before = Counter(passes.counts)
            async with site.daemon() as assembly:
                await passes.wait_for(site.read_at_start, before)
                await wait_until_stable(site, assembly)
                expected.append(site.content())

    passes.counts.clear()
    with Site(tmp_path / "reloaded", passes) as site:
        site.write(history[0], limits[0])
        async with site.daemon() as assembly:
            for step, (configured, service) in enumerate(zip(history, limits, strict=True)):
                if step:
                    site.write(configured, service)
                    reloaded = await assembly.reloader.reload(by="test")
                    assert not reloaded.mistakes
                await reach(site, assembly, expected[step], f"seed {seed}, step {step}: {configured}")


async def wait_until_stable(site: Site, assembly: Assembly) -> None:
    """Deliver until two contents are equal."""
    before: list[str] = []
    while (content := site.content()) != before:
        before = content
        await site.deliver_all(assembly)


async def reach(site: Site, assembly: Assembly, expected: list[str], where: str) -> None:
    """Wait until the content is the expected one, and check that another pass over all sources keeps it."""
    found: list[str] = []
    deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS / 2
    while asyncio.get_running_loop().time() < deadline:
        known = site.passes.ended.generation
        await site.deliver_all(assembly)
        found = site.content()
        if found == expected:
            break
        await site.passes.ended.wait_past(known, seconds=1.0)
    missing, surplus = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    assert found == expected, f"{where}\nonly after the restart: {missing}\nonly after the reload: {surplus}"
    before = Counter(site.passes.counts)
    again = [reader.pipeline for reader in assembly.readers if reader.pipeline not in site.scheduled()]
    for name in again:
        assembly.supervisor.wake(name)
    await site.passes.wait_for(again, before)
    await site.deliver_all(assembly)
    assert site.content() == expected, f"{where}: another pass changed the content"


async def test_a_full_state_file_refuses_the_reload_and_the_former_pipelines_continue(
    tmp_path: Path, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = random.Random(0)
    before = pipeline(numbers, "c") | {"schedule": "on-change"}
    after = pipeline(numbers, "b") | {"sink": {"workspace": "Bench", "label": "Another sink"}}
    with Site(tmp_path / "site", passes) as site:
        site.write([before], {})
        async with site.daemon() as assembly:
            await passes.wait_for(["c"], Counter())
            await site.deliver_all(assembly)
            content = site.content()

            def fail(*_: object, **__: object) -> None:
                raise MirrorFull("the disk of the state file is full")

            with monkeypatch.context() as patch:
                patch.setattr(assembly.mirror.intake, "reconfigure", fail)
                site.write([after], {"requests_at_most": 2})
                counted = Counter(passes.counts)
                refused = await assembly.reloader.reload(by="test")
                assert "the disk of the state file is full. Reload again when there is space" in refused.mistakes[0]
                # The former pipeline was ended, and reads again.
                await passes.wait_for(["c"], counted)
            await site.deliver_all(assembly)
            assert site.content() == content
            reloaded = await assembly.reloader.reload(by="test")
            assert (reloaded.added, reloaded.removed) == (("b",), ("c",))
