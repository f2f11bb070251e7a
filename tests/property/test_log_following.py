"""After any operations on a log, every appended line is read once, in order, through restarts and kills."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from connectors.log import LogConnector, LogOptions, tail
from ingestd.sdk import Cursor, Partition, SourceContext

_HEADER = "n,text\n"


class LogMachine(RuleBasedStateMachine):
    """A writer, a rotation by name, by copy and by compression, and a reader that may lose everything except its cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.log = self.folder / "bench.csv"
        self.appended: list[str] = []
        self.taken: dict[str, str] = {}
        self.order: list[int] = []
        self.cursor: Cursor | None = None
        self.events: list[str] = []
        self.half = False
        self.reader = self.opened()
        self.small = patch.object(tail, "BLOCK_BYTES", 64)  # so that a reading has several batches
        self.small.start()

    def opened(self) -> LogConnector:
        options = LogOptions.model_validate({"path": ".", "idle_seconds": 1e12})
        context = SourceContext(pipeline="t", base=self.folder, now=lambda: 4e9, log=self.events.append)
        return LogConnector(options, context)

    def teardown(self) -> None:
        self.look()
        self.small.stop()
        assert list(self.taken) == [str(number) for number in range(len(self.appended) - self.half)]
        assert list(self.taken.values()) == self.appended[: len(self.taken)]
        shutil.rmtree(self.folder)

    @rule(count=st.integers(1, 4), same=st.booleans())
    def append(self, count: int, same: bool) -> None:
        """Append lines of one length, so that a truncated file soon has its old size; and of others."""
        with self.log.open("a", newline="") as log:
            if not log.tell():
                log.write(_HEADER)
            if self.half:
                log.write(f"{self.appended[-1]}\n")
                self.half = False
            for _ in range(count):
                text = "x" if same else f'"a, ""b""\nline {len(self.appended)}"'
                log.write(f"{len(self.appended)},{text}\n")
                self.appended.append("x" if same else f'a, "b"\nline {len(self.appended)}')

    @rule()
    def append_half(self) -> None:
        if self.half:
            return
        with self.log.open("a", newline="") as log:
            if not log.tell():
                log.write(_HEADER)
            log.write(f"{len(self.appended)},")
        self.appended.append("late")
        self.half = True

    @rule()
    def rotate(self) -> None:
        if self.log.exists() and not self.half:
            self.shift()
            self.log.rename(self.folder / "bench.csv.1")

    @rule(looks=st.booleans())
    def rotate_under_a_writer(self, looks: bool) -> None:
        """Rotate while the writer appends a line to the renamed file, then begins a new one."""
        if not self.log.exists() or self.half or not self.log.stat().st_size:
            return
        self.shift()
        with self.log.open("a", newline="") as log:
            self.log.rename(self.folder / "bench.csv.1")
            if looks:
                self.look()
            log.write(f"{len(self.appended)},late\n")
            self.appended.append("late")

    @rule()
    def forget_the_oldest(self) -> None:
        """Delete a file that was read, as the operator verified, when the newest one was also read in part."""
        older = sorted(self.folder.glob("bench.csv.*"), key=lambda path: int(path.name.split(".")[2]))
        if older and self.log.exists() and self.log.stat().st_size > len(_HEADER) and not self.half:
            self.look()
            older[-1].unlink()

    @rule(looks=st.booleans())
    def copy_and_truncate(self, looks: bool) -> None:
        if not self.log.exists() or self.half:
            return
        self.shift()
        copy = self.folder / "bench.csv.1"
        if looks:  # also during the copying
            copy.write_bytes(self.log.read_bytes()[: self.log.stat().st_size // 2])
            self.look()
        shutil.copyfile(self.log, copy)
        if looks:
            self.look()
        os.truncate(self.log, 0)

    @rule(which=st.integers(0, 3))
    def pack(self, which: int) -> None:
        plain = sorted(path for path in self.folder.glob("bench.csv.*") if path.suffix != ".gz")
        if not plain:
            return
        path = plain[which % len(plain)]
        packed = path.with_name(f"{path.name}.gz")
        data, status = gzip.compress(path.read_bytes()), path.stat()
        packed.write_bytes(data[: len(data) // 2])
        if which % 2:
            self.look()
        packed.write_bytes(data)
        os.utime(packed, ns=(status.st_mtime_ns, status.st_mtime_ns))
        path.unlink()

    @rule()
    def restart(self) -> None:
        self.reader = self.opened()

    @rule()
    def look(self) -> None:
        self.read(give_up_after=None)

    @rule(batches=st.integers(0, 2))
    def be_killed(self, batches: int) -> None:
        """Kill the reader during a reading; only durable state is kept."""
        self.read(give_up_after=batches)
        self.reader = self.opened()

    @invariant()
    def nothing_is_missed(self) -> None:
        assert not [sentence for sentence in self.events if "missed" in sentence or "missing" in sentence]

    def shift(self) -> None:
        """Rename bench.csv.2.gz to bench.csv.3.gz and so on."""
        older = sorted(self.folder.glob("bench.csv.*"), key=lambda path: -int(path.name.split(".")[2]))
        for path in older:
            name, end, number, *packed = path.name.split(".")
            path.rename(self.folder / ".".join([name, end, str(int(number) + 1), *packed]))

    def read(self, give_up_after: int | None) -> None:
        assert list(self.reader.partitions()) in ([], [Partition(name="bench.csv", snapshot=False)])
        if not any(self.folder.iterdir()):
            return
        batches = self.reader.read(Partition(name="bench.csv", snapshot=False), self.cursor)
        for count, batch in enumerate(batches):
            if count == give_up_after:
                return
            self.cursor = json.loads(json.dumps(batch.cursor))
            assert not batch.rejects
            for number, text in batch.records.rows():
                assert number not in self.taken
                self.taken[number] = text
            self.order += batch.positions.to_list()
            assert self.order == sorted(set(self.order))


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(
    max_examples=100, derandomize=True, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
