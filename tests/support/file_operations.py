"""Random operations on a drop folder, while the daemon is restarted and killed. The delivered entries are checked.

``python -m tests.support.file_operations FOLDER SEED ROUNDS MOUNTS`` runs ROUNDS rounds, each from an empty folder, and prints
a line of JSON for each round. If MOUNTS is ``mount`` (in a private mount namespace), the drop folder is a bind mount that is
mounted and unmounted, and the files are changed in ``share``, as if by another machine. Otherwise MOUNTS is ``plain``.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceContext
from tests.support.crashing_sqlite import CrashPoint, ProcessDied, copy_database, crashing
from tests.support.delivery_rig import rig
from tests.support.document_server import DocumentServer

NAMES = ("a.csv", "b.csv", "c.csv")
PARTS = ("P0", "P1", "P2", "P3")
STABLE_SECONDS = 5.0
CANARY = ".mounted"
HEADER = "part,mass\n"


class RandomRound:
    """A round of random operations. ``wanted``: the expected content of the sink, the last stable value of each key."""

    def __init__(self, folder: Path, server: DocumentServer, rng: random.Random, *, mounts: bool, label: str) -> None:
        self.folder = folder
        self.server = server
        self.rng = rng
        self.label = label
        self.mounts = mounts
        self.after = rng.choice(["keep", "archive"])
        self.canary = CANARY if rng.random() < 0.5 else ""
        self.share = folder / ("share" if mounts else "drop")
        self.share.mkdir(parents=True)
        (self.share / CANARY).touch()
        if mounts:
            (folder / "drop").mkdir()
            (folder / "drop" / "ghost.csv").write_text(
                f"{HEADER}GHOST,1\n"
            )  # content that must not be read while the folder is unmounted
        self.mounted = not mounts
        self.clock = time.time()
        self.wanted: dict[str, str] = {}
        self.read: dict[str, tuple[int, int, int]] = {}
        self.pending: list[tuple[str, tuple[int, int, int], dict[str, str]]] = []
        self.died = False
        self.runs = 0
        self.crashes = 0
        self.did: list[str] = []

    @property
    def state(self) -> Path:
        return self.folder / f"run-{self.crashes}" / "ingestd.db"

    # ---------------------------------------------------------------------------------------------- operations

    def operate(self) -> None:
        """Apply one random operation to a file."""
        present = [name for name in NAMES if (self.share / name).exists()]
        what = self.rng.choice([self._create, self._append, self._replace, self._truncate, self._rename, self._delete])
        name = self.rng.choice(present) if present and what != self._create else self.rng.choice(NAMES)
        path = self.share / name
        if not path.exists():
            what = self._create
        self.did.append(f"{what.__name__[1:]} {name}")
        what(path)
        self.clock += 0.01
        if path.exists() and what != self._rename:
            os.utime(path, (self.clock, self.clock))

    def _rows(self) -> str:
        rows = self.rng.randint(0, 4)
        return "".join(f"{self.rng.choice(PARTS)},{self.rng.randint(0, 99)}.50\n" for _ in range(rows))

    def _create(self, path: Path) -> None:
        path.write_text(HEADER + self._rows())

    def _append(self, path: Path) -> None:
        with path.open("a") as file:
            file.write(self._rows())

    def _replace(self, path: Path) -> None:
        written = path.with_name(f"{path.name}.part")
        written.write_text(HEADER + self._rows())
        os.utime(written, (self.clock, self.clock))
        written.replace(path)

    def _truncate(self, path: Path) -> None:
        os.truncate(path, self.rng.randint(0, path.stat().st_size))

    def _rename(self, path: Path) -> None:
        path.replace(path.with_name(self.rng.choice(NAMES)))

    def _delete(self, path: Path) -> None:
        path.unlink()

    # ------------------------------------------------------------------------------------------------- mounting

    def mount(self) -> None:
        if not self.mounted:
            subprocess.run(["mount", "--bind", self.share, self.folder / "drop"], check=True)
            self.mounted = True

    def unmount(self) -> None:
        if self.mounts and self.mounted:
            subprocess.run(["umount", self.folder / "drop"], check=True)
            self.mounted = False
            self.did.append("unmount")

    # --------------------------------------------------------------------------------------------------- running

    async def play(self, steps: int) -> None:
        """Run the daemon until all steps are done. Each run ends by a restart, or by a crash at a random SQLite statement."""
        left = steps
        while left > 0:
            crash_point = CrashPoint(self.rng.randint(8, 160)) if self.rng.random() < 0.4 else None
            left = await self._run(left, crash_point)
        self.unmount()

    async def _run(self, left: int, crash_point: CrashPoint | None) -> int:
        self.runs += 1
        if self.canary and self.rng.random() < 0.3:
            self.unmount()  # Only with a canary: without it, the daemon can't notice at its start that the mount is missing.
        else:
            self.mount()
        factory = crashing(crash_point) if crash_point is not None else sqlite3.Connection
        state = self.state
        try:
            mirror = SqliteMirror.open(state, factory=factory)
        except ProcessDied:
            return self._keep_crashed_state(left, state)
        try:
            return await self._deliver(mirror, left)
        except BaseException:  # A task group may have wrapped `ProcessDied`.
            if crash_point is None or not crash_point.reached:
                raise
            return self._keep_crashed_state(left, state)
        finally:
            with contextlib.suppress(ProcessDied):
                mirror.close()

    def _keep_crashed_state(self, left: int, state: Path) -> int:
        self.did.append("killed")
        self.crashes += 1
        self.died = True
        if state.exists():
            copy_database(state, self.state)
        return left

    async def _deliver(self, mirror: SqliteMirror, left: int) -> int:
        asyncio.get_running_loop().set_exception_handler(_unless_it_died)
        reader = self._reader(mirror)
        mirror.intake.activate(["play"])
        async with rig(
            url=self.server.url,
            api_key=self.server.api_key,
            deliverable=mirror.delivery,
            seed=self.runs,
            transport=httpx.AsyncHTTPTransport(verify=False),
        ) as running:
            mirror.on_pending = running.dispatcher.wake
            reader.acknowledge_partitions()
            if not self.mounted:
                assert reader.read_pass().away, "an unmounted folder was read as an empty one"
                self.mount()
            if self.died:  # The current work ends before anything else happens.
                await self._finish(reader, running.drained)
                self.died = False
            while left > 0:
                for _ in range(self.rng.randint(1, 3)):
                    self.operate()
                    if self.rng.random() < 0.5:
                        self._pass(reader)
                if self.mounts and self.rng.random() < 0.3:
                    self._vanish(reader)
                await self._finish(reader, running.drained)
                left -= 1
                if self.rng.random() < 0.25:
                    self.did.append("restart")
                    return left
        return left

    async def _finish(self, reader: Reader, drained: Callable[[], Awaitable[object]]) -> None:
        self._calm(reader)
        await drained()
        reader.acknowledge_partitions()
        for name, identity, entries in self.pending:
            self.read[name] = identity
            self.wanted.update(entries)
        self.pending.clear()

    def _reader(self, mirror: SqliteMirror) -> Reader:
        options = DirectoryOptions.model_validate({
            "path": "drop", "settle_seconds": STABLE_SECONDS, "empty_seconds": 1e9, "after": self.after,
            "canary": self.canary, "archive": "done" if self.after == "archive" else None,
        })  # fmt: skip
        connector = DirectoryConnector(
            options, SourceContext(pipeline="play", base=self.folder, now=lambda: self.clock)
        )
        return Reader(
            pipeline="play",
            connector=connector,
            mapping=Mapping([EntrySpec(key="{part}", value="{mass}")]),
            sink=SinkAddress(workspace="Bench", by="label", name=self.label),
            mirror=mirror.intake,
            emit=lambda event: None,
        )

    def _pass(self, reader: Reader) -> None:
        report = reader.read_pass()
        assert not report.away, report
        assert not report.broken, report

    def _vanish(self, reader: Reader) -> None:
        self._pass(reader)
        self.unmount()
        report = reader.read_pass()
        assert report.away, "an unmounted folder was read as an empty one"
        assert report.read == ()
        self.mount()

    def _calm(self, reader: Reader) -> None:
        """Let `STABLE_SECONDS` pass without a write, after which the files are stable."""
        self._pass(reader)
        self.clock += STABLE_SECONDS
        self.did.append("calm")
        self._expect()
        self._pass(reader)

    def _expect(self) -> None:
        found = [(path.stat(), path) for name in NAMES if (path := self.share / name).exists()]
        for status, path in sorted(found, key=lambda one: (one[0].st_mtime_ns, one[1].name)):
            identity = (status.st_ino, status.st_size, status.st_mtime_ns)
            known = [self.read.get(path.name), *(seen for name, seen, _ in self.pending if name == path.name)]
            if status.st_size and identity not in known:
                self.pending.append((path.name, identity, entries_of(path.read_text())))


def _unless_it_died(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Ignore `ProcessDied` in a task that is no longer awaited."""
    if not isinstance(context.get("exception"), ProcessDied):
        loop.default_exception_handler(context)


def entries_of(text: str) -> dict[str, str]:
    """Return the entries of a file: its rows with two fields, if the header is complete. Uses Python's csv module."""
    header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    return {row[0]: row[1] for row in rows if len(row) == 2 and row[0]} if header == ["part", "mass"] else {}


def main() -> None:
    folder, seed, rounds, mounts = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "mount"
    with DocumentServer() as server:
        server.workspace("Bench")
        for number in range(rounds):
            rng = random.Random(f"{seed}-{number}")
            played = RandomRound(folder / str(number), server, rng, mounts=mounts, label=f"Round {number}")
            asyncio.run(played.play(6))
            held = {key: value for key, (value, _) in server.values(played.label).items()} if played.wanted else {}
            print(json.dumps({"did": played.did, "wanted": played.wanted, "held": held}), flush=True)  # noqa: T201
            shutil.rmtree(folder / str(number))


if __name__ == "__main__":
    main()
