"""A drop folder, a state file and a service that process a few small files and survive crashes.

The scenario records what was dropped; `check` compares it with the service, the archive and the state file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import httpx

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, Cursor, Deletes, Partition, SourceContext
from tests.support.crashing_sqlite import ProcessDied, copy_database
from tests.support.delivery_rig import rig
from tests.support.entry_writes import Written, writes_by_key


class Service(Protocol):
    """The methods of a server that the scenario needs."""

    @property
    def url(self) -> str: ...

    @property
    def api_key(self) -> str: ...

    def accepted(self) -> Sequence[Written]: ...

    def forget_requests(self) -> None: ...

    def values(self, label: str) -> dict[str, tuple[str | None, str]]: ...


class SmallBatches(DirectoryConnector):
    """The directory connector with a batch for each record, so that small files have several batches."""

    deletes: Deletes = "keep"

    def partitions(self) -> Iterable[Partition]:
        return [replace(partition, deletes=self.deletes) for partition in super().partitions()]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        for batch in super().read(partition, cursor):
            height = batch.records.height
            for row in range(height - 1):
                yield Batch(
                    records=batch.records[row : row + 1],
                    positions=batch.positions[row : row + 1],
                    cursor={**batch.cursor, "offset": row},
                    facts=batch.facts,
                    rejects=batch.rejects if row == 0 else (),
                    header=batch.header,
                )
            yield Batch(
                records=batch.records[max(height - 1, 0) :],
                positions=batch.positions[max(height - 1, 0) :],
                cursor=batch.cursor,
                facts=batch.facts,
                rejects=batch.rejects if height <= 1 else (),
                last=batch.last,
                unchanged=batch.unchanged,
                header=batch.header,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A file: its text, its entries in order, and the number of invalid records."""

    name: str
    text: str
    entries: tuple[tuple[str, str], ...]
    bad: int = 0


@dataclass(kw_only=True)
class CrashScenario:
    """A scenario of several ``steps``. A step drops its files together, and ends when they are read, delivered and archived.

    ``deletes``: whether an entry is removed if its file comes again without it. ``empty``: a new state file, which is copied
    for the first run.
    """

    folder: Path
    empty: Path
    service: Service
    workspace: str
    label: str
    steps: Sequence[Sequence[Drop]]
    deletes: Deletes = "keep"
    state: Path = field(init=False)
    dropped: int = 0
    done: int = 0
    crashes: int = 0

    def __post_init__(self) -> None:
        self.state = self.folder / "run-0" / "ingestd.db"
        copy_database(self.empty, self.state)
        (self.folder / "drop").mkdir(parents=True)

    # ------------------------------------------------------------------------------------------------ running

    def run(self, factory: type[sqlite3.Connection] = sqlite3.Connection) -> None:
        """Continue after the last run, until all steps are done."""
        mirror = SqliteMirror.open(self.state, factory=factory)
        try:
            asyncio.run(self._run(mirror))
        except BaseException:
            self.keep_crashed_state()
            raise
        finally:
            mirror.close()

    def keep_crashed_state(self) -> None:
        """Copy the state file as it is on the disk. The next run uses the copy, which this run has not locked."""
        self.crashes += 1
        found = self.state
        self.state = self.folder / f"run-{self.crashes}" / "ingestd.db"
        copy_database(found, self.state)

    async def _run(self, mirror: SqliteMirror) -> None:
        reader = Reader(
            pipeline="sweep",
            connector=self._connector(),
            mapping=Mapping([EntrySpec(key="{part}", value="{mass}")]),
            sink=SinkAddress(workspace=self.workspace, by="label", name=self.label),
            mirror=mirror.intake,
            emit=lambda event: None,
        )
        mirror.intake.activate(["sweep"])
        asyncio.get_running_loop().set_exception_handler(_unless_it_died)
        async with rig(
            url=self.service.url,
            api_key=self.service.api_key,
            deliverable=mirror.delivery,
            seed=self.crashes,
            transport=httpx.AsyncHTTPTransport(verify=False),  # avoids loading certificates in every run
        ) as running:
            mirror.on_pending = running.dispatcher.wake
            while self.done < len(self.steps):
                self._drop()
                report = reader.read_pass()
                assert not report.broken, report
                assert not report.rejected, report
                assert not report.away, report
                assert await running.drained() == []
                reader.acknowledge_partitions()
                self.done += 1

    def _connector(self) -> DirectoryConnector:
        options = DirectoryOptions(
            path=Path("drop"), settle_seconds=0, after="archive", archive=Path("done"), pattern=["*.csv"]
        )
        connector = SmallBatches(options, SourceContext(pipeline="sweep", base=self.folder, now=lambda: 4e9))
        connector.deletes = self.deletes
        return connector

    def _drop(self) -> None:
        """Write the files of the current step with ascending times, unless an earlier run has written this step's files."""
        if self.dropped > self.done:
            return
        for place, drop in enumerate(self.steps[self.dropped]):
            written = self.folder / "being-written"
            written.write_text(drop.text, encoding="utf-8", newline="")
            os.utime(written, (1e9 + place, 1e9 + place))
            written.rename(self.folder / "drop" / drop.name)
        self.dropped += 1

    # ------------------------------------------------------------------------------------------------ checking

    def check(self, *, more_writes: int) -> None:
        """Check all invariants at the end. A key may be written up to ``more_writes`` times more often than it changed."""
        drops = [drop for step in self.steps for drop in step]
        wanted: dict[str, str] = {}
        changes: Counter[str] = Counter()
        made: dict[str, set[str]] = {}
        former: defaultdict[str, list[str]] = defaultdict(list)
        for drop in drops:
            keys = {key for key, _ in drop.entries}
            if self.deletes == "remove":
                for key in made.get(drop.name, set()) - keys:
                    former[key].append(wanted.pop(key))
                    changes[key] += 1
            made[drop.name] = keys
            for key, value in dict(drop.entries).items():
                if wanted.get(key, value) != value:
                    former[key].append(wanted[key])
            for key, value in drop.entries:
                changes[key] += wanted.get(key) != value
                wanted[key] = value
        assert self.service.values(self.label) == {key: (value, "scalar") for key, value in wanted.items()}
        done = {path.name: path for path in (self.folder / "done").iterdir() if path.is_file()}
        receipts = {name: json.loads(done.pop(name).read_bytes()) for name in list(done) if name.endswith(".json")}
        assert {name: path.read_text(encoding="utf-8") for name, path in done.items()} == archived(drops)
        assert receipts.keys() == {f"{name}.receipt.json" for name in done}
        quarantined = {str(path.relative_to(self.folder)) for path in (self.folder / "done").glob("rejected/*")}
        assert {receipt["rejected"]["rows_in"] for receipt in receipts.values()} - {""} == quarantined
        assert list((self.folder / "drop").glob("[!.]*")) == []
        status = SqliteMirror.observe(self.state)
        try:
            last = {drop.name: drop.bad for drop in drops}
            assert (status.pending(), status.rejected()) == (0, sum(last.values()))
            for key in changes:
                # After a crash, a second reading adds former values of repeated keys, so other values may be between these.
                found = iter([one.value for one in reversed(status.former_values(key))])
                assert all(value in found for value in former[key]), f"a former value of {key} is missing"
        finally:
            status.close()
        for key, times in writes_by_key(self.service.accepted()).items():
            assert times <= changes[key] + more_writes, f"{key} was written {times} times"


def _unless_it_died(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Ignore results of tasks after the process died."""
    if not isinstance(context.get("exception"), ProcessDied):
        loop.default_exception_handler(context)


def archived(drops: Sequence[Drop]) -> dict[str, str]:
    """Return the expected content of the archive by name. The second file of a name is ``name~2``."""
    held: dict[str, str] = {}
    for drop in drops:
        stem, _, end = drop.name.partition(".")
        names = (f"{stem}~{number}.{end}" if number > 1 else drop.name for number in range(1, len(drops) + 1))
        held[next(name for name in names if name not in held)] = drop.text
    return held
