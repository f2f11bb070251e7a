"""The mirror compared with a dictionary: after any sequence of operations the sink has the last value of each key.

The rules write and remove sources, read them, prune, claim, deliver, lose responses, reject, retry, drop, crash and restart;
another program writes to the service, and drift is found, repaired and adopted. The state file is lost or replaced by an older
copy, and the pipeline is renamed. A guard or a contract holds runs, which are approved or discarded; the mapping changes, and
cursors are reset. The service is a dictionary, and the model is the expected content of the sink.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ingestd.core.address import SinkAddress
from ingestd.core.contract import ColumnContract, Contract
from ingestd.core.errors import RunNotHeld
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Partition
from ingestd.intake import Reader
from ingestd.mirror.port import Claim, RejectedEntry
from ingestd.mirror.rejections import Selection
from ingestd.mirror.rollback import RunSelection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.entries.former_values import MOST
from tests.support.scripted_source import Script, ScriptedConnector

T = TypeVar("T")
SINK = SinkAddress(workspace="w", by="label", name="s")
KEYS = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["1", "2", "3", ""])
ROWS = st.lists(st.fixed_dictionaries({"k": KEYS, "v": VALUES, "other": VALUES}), max_size=6)
MAPPINGS = [Mapping([EntrySpec(key="{k}", value=value)]) for value in ("{v}", "{v}0")]
SUFFIXES = ["", "0"]
GUARDS = [Guard(removed_percent=50, minimum=100), Guard(removed_percent=30, changed_percent=50, empty=True, minimum=2)]
CONTRACT = Contract(columns={name: ColumnContract() for name in ("k", "v", "other")}, new="hold")


def wire_items(claim: Claim) -> list[dict[str, str]]:
    return [item for part in claim.parts for item in json.loads(part.body)]


class MirrorModel(RuleBasedStateMachine):
    @initialize(
        deletes=st.sampled_from(["keep", "remove"]),
        batch_rows=st.integers(1, 3),
        guard=st.sampled_from(GUARDS),
        contract=st.sampled_from([None, CONTRACT]),
    )
    def start(self, deletes: str, batch_rows: int, guard: Guard, contract: Contract | None) -> None:
        self.guard, self.contract, self.mapping = guard, contract, 0
        self.known: set[str] = set()
        self.has_changed_mapping = False
        # Partitions with content that is not in the sink's expected content yet, and those of them with a held run: its number
        # and its entries (None: it was discarded).
        self.unread: set[str] = set()
        self.withheld: dict[str, tuple[int, dict[str, str]] | None] = {}
        # What was wanted before and after the last run that changed it, with the entries of its partition; None: not known.
        self.undoable: tuple[dict[str, str], dict[str, str]] | None = None
        self.was_rolled_back = False
        self.folder = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        for bound in ("KEPT", "RUNS_KEPT", "RUNS_APART", "ABSENT_SECONDS"):
            self.patch.setattr(f"ingestd.mirror.sqlite.runs.pruner.{bound}", 0)
        self.runner = asyncio.Runner()
        self.script = Script(deletes=deletes, batch_rows=batch_rows)  # type: ignore[arg-type]
        # With deletes only one partition, because the intake decides which of two owns a key.
        self.names = ["p"] if deletes == "remove" else ["p", "q"]
        self.service: dict[str, str] = {}
        self.wanted: dict[str, str] = {}
        self.named: set[str] = set()
        self.claims: list[Claim] = []
        self.acknowledged: dict[Claim, set[str]] = {}
        # Keys with another value in the service than the sources want, and the program that wrote it. Our own write ends it.
        self.refused: set[str] = set()
        self.dropped: set[str] = set()
        self.strange: set[str] = set()
        self.adopted: set[str] = set()
        # Keys in the service that no source has named since the state file was lost or replaced.
        self.left: set[str] = set()
        # Keys that the service had when it was adopted, and that no source has named since.
        self.found: set[str] = set()
        self.backup: Path | None = None
        self.pipeline = "pipe"
        self.open()

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.runner.run(work)

    def open(self) -> None:
        self.acknowledged.clear()  # a claim of a lost state file may equal a later one
        self.mirror = SqliteMirror.open(self.folder / "state.db")
        self.renamed = self.mirror.intake.activate([self.pipeline], sources={self.pipeline: "the script"})
        self.reader = Reader(
            pipeline=self.pipeline, connector=ScriptedConnector(self.script), mapping=MAPPINGS[self.mapping], sink=SINK,
            mirror=self.mirror.intake, emit=lambda event: None, guard=self.guard, contract=self.contract,
        )  # fmt: skip

    def sink_id(self) -> int | None:
        lanes = self.run(self.mirror.delivery.lanes())
        return lanes[0].id if lanes else None

    @rule(name=st.integers(0, 1), rows=ROWS, extra=st.booleans())
    def write_and_read(self, name: int, rows: list[dict[str, str | None]], extra: bool) -> None:
        partition = self.names[name % len(self.names)]
        self.script.write(partition, [{**row, "extra": ""} for row in rows] if extra else rows)
        self.unread.add(partition)
        was_discarded = self.withheld.get(partition, ()) is None
        expected = self.is_held(partition) if partition in self.known and not was_discarded else None
        if self.was_rolled_back:  # the same content is held, whatever the guard says
            expected = None
        self.read()
        assert expected is None or expected == (partition in self.withheld), "the guard decides as the model does"

    def made(self, partition: str) -> dict[str, str]:
        """Return the entries of a partition's content."""
        return {str(row["k"]): f"{row['v']}{SUFFIXES[self.mapping]}" for row in self.script.contents[partition].rows}

    def is_held(self, partition: str) -> bool | None:
        """Return whether the partition's next run is held; None: only the state file knows."""
        if self.script.deletes == "keep" or self.dropped | self.adopted | self.left | self.strange:
            return None
        before, made = self.wanted, self.made(partition)
        if self.found & made.keys():  # the guard counts these among the entries before, until their first reading
            return None
        removed, changed = (
            len(before.keys() - made.keys()),
            sum(before.get(key, value) != value for key, value in made.items()),
        )
        has_effect = before != made
        is_new = self.contract is not None and any("extra" in row for row in self.script.contents[partition].rows)
        limits = ((removed, self.guard.removed_percent), (changed, self.guard.changed_percent))
        beyond = any(limit and count and count * 100 >= limit * len(before) for count, limit in limits)
        is_empty = bool(self.guard.empty and before and not self.script.contents[partition].rows)
        return (is_new and has_effect) or is_empty or (beyond and len(before) >= self.guard.minimum)

    @rule()
    def read(self) -> None:
        report = self.reader.read_pass()
        assert not report.broken
        assert not report.rejected
        assert not report.away
        held = {one.partition: one.run for one in self.mirror.status.held_runs()}
        for name in [name for name in self.script.contents if name in self.unread]:
            digest = MAPPINGS[self.mapping].digest
            digest = self.contract.digest_with(digest) if self.contract is not None else digest
            # As the source names it: the kind is stored, and a rollback keeps it for the approval of the run.
            partition = Partition(name=name, deletes=self.script.deletes)
            is_withheld = self.mirror.intake.open_partition(self.pipeline, partition, SINK, digest).withheld is not None
            assert is_withheld or name not in held
            if is_withheld:
                self.withheld[name] = (held[name], self.made(name)) if name in held else None
            else:
                self.withheld.pop(name, None)
                self.unread.discard(name)
                self.deliverable(self.made(name))
        assert report.held == bool(self.withheld)

    def deliverable(self, made: dict[str, str]) -> None:
        """Expect the entries of a reading in the sink."""
        self.known |= set(self.script.contents)
        self.named.update(made)
        self.found -= made.keys()
        had_value = self.left & made.keys()
        self.left -= made.keys()
        if self.script.deletes == "remove":
            self.undoable = (self.wanted, made) if self.wanted != made else self.undoable
            if had_value:  # a rollback restores what the service had, and no source names it
                self.undoable = None
            self.was_rolled_back = False
            self.wanted = made
        else:
            self.wanted.update(made)
        if self.has_changed_mapping:
            # With deletes: keep, a reading with another mapping releases the delivered keys of vanished rows.
            named = (self.made(name) for name in self.script.contents if name not in self.withheld)
            self.left |= self.wanted.keys() - {key for entries in named for key in entries} - made.keys()

    @rule(which=st.integers(0, 1))
    def approve(self, which: int) -> None:
        """Deliver what was read in the held run, also if the source has changed since."""
        runs = [(name, *run) for name, run in sorted(self.withheld.items()) if run is not None]
        if not runs:
            with pytest.raises(RunNotHeld):
                self.mirror.intake.approve(1_000_000)
            return
        name, run, made = runs[which % len(runs)]
        summary = self.mirror.intake.approve(run)
        del self.withheld[name]
        self.unread.discard(name)
        self.deliverable(made)
        if summary.collided:  # the daemon reads again what the differences left open
            self.read()

    @precondition(lambda self: self.undoable and "p" in self.script.contents)  # the file of the run still exists
    @precondition(lambda self: not self.refused | self.dropped | self.strange | self.adopted | self.left)
    @rule(crashes=st.booleans())
    def roll_back(self, crashes: bool) -> None:
        """Restore what was wanted before the last run, and expect its content to be held."""
        assert self.undoable is not None
        before, made = self.undoable
        changed = [
            one.summary.id
            for one in self.mirror.status.past_runs(self.pipeline, limit=1_000)
            if one.summary.created or one.summary.updated or one.summary.removed
        ]
        keys = [key for key in {**before, **made} if before.get(key) != made.get(key)]
        done = self.mirror.intake.roll_back(RunSelection(run=max(changed)), by="root")
        assert (done.changed, done.left_count) == (len(keys), 0)
        self.wanted, self.undoable, self.was_rolled_back = before, None, True
        held = [one.run for one in self.mirror.status.held_runs()]
        if "p" not in self.withheld:
            self.withheld["p"] = (max(changed), made)
            assert held == [max(changed)]
        self.unread.add("p")
        if crashes:
            self.crash()
        self.read()

    @rule(which=st.integers(0, 1))
    def discard(self, which: int) -> None:
        runs = [(name, run[0]) for name, run in sorted(self.withheld.items()) if run is not None]
        if runs:
            name, run = runs[which % len(runs)]
            assert self.mirror.intake.discard(run).partition == name
            self.withheld[name] = None
            with pytest.raises(RunNotHeld, match="was discarded"):
                self.mirror.intake.approve(run)

    @rule(name=st.integers(0, 1))
    def reset_a_cursor(self, name: int) -> None:
        """Read a partition from its start, also if its run is held or was discarded."""
        partition = self.names[name % len(self.names)]
        known = self.mirror.cursors.set_cursor(self.pipeline, partition, None)
        assert known or partition not in self.script.contents
        if partition in self.script.contents:
            self.unread.add(partition)
            before = self.script.readings
            self.read()
            assert self.script.readings > before, "it is read again"

    @rule()
    def change_the_mapping(self) -> None:
        self.mapping, self.has_changed_mapping = 1 - self.mapping, True
        self.crash()
        self.unread |= set(self.script.contents)
        self.read()

    @rule(limit=st.integers(1, 3))
    def claim(self, limit: int) -> None:
        sink = self.sink_id()
        claim = self.run(self.mirror.delivery.claim(sink, max_items=limit, max_bytes=10_000)) if sink else None
        if claim is None:
            return
        out = {key for other in self.claims for key in self.held(other)}
        taken = [item["key"] for item in wire_items(claim)]
        assert len(taken) == len(set(taken)) <= limit
        assert out.isdisjoint(taken), "two claims hold one key"
        self.claims.append(claim)

    def held(self, claim: Claim) -> set[str]:
        """Return the keys that a claim still holds: acknowledged keys may be claimed again with a newer value."""
        return {item["key"] for item in wire_items(claim)} - self.acknowledged.get(claim, set())

    def apply(self, claim: Claim, keys: set[str] | None = None) -> None:
        """Apply items of a claim in the service; fail if one is sent again after it was acknowledged."""
        for item in wire_items(claim):
            if item["key"] not in self.held(claim) or (keys is not None and item["key"] not in keys):
                continue
            # An adopted removal of a key is valid until its record is mapped again.
            taken_over = item["key"] in self.adopted
            for excuse in (self.refused, self.dropped, self.strange, self.adopted, self.left):
                excuse.discard(item["key"])
            if item.get("delete"):
                self.service.pop(item["key"], None)
                if taken_over:
                    self.adopted.add(item["key"])
            else:
                self.service[item["key"]] = item["value"]

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 9))
    def deliver(self, which: int) -> None:
        claim = self.claims.pop(which % len(self.claims))
        self.apply(claim)
        self.run(self.mirror.delivery.acknowledge(claim))

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 9))
    def lose_the_response(self, which: int) -> None:
        claim = self.claims.pop(which % len(self.claims))
        self.apply(claim)
        self.run(self.mirror.delivery.release(claim))

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 9), first=st.booleans(), data=st.data())
    def deliver_some(self, which: int, first: bool, data: st.DataObject) -> None:
        claim = self.claims[which % len(self.claims)]
        keys = sorted(self.held(claim))
        some = set(data.draw(st.lists(st.sampled_from(keys), unique=True))) if keys else set()
        self.apply(claim, some)
        self.run(self.mirror.delivery.acknowledge_some(claim, delivered=sorted(some)))
        self.acknowledged[claim] = self.acknowledged.get(claim, set()) | some
        if first:
            self.claims.remove(claim)
            self.run(self.mirror.delivery.release(claim))

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 9), data=st.data())
    def refuse_some(self, which: int, data: st.DataObject) -> None:
        claim = self.claims[which % len(self.claims)]
        keys = sorted(self.held(claim))
        some = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
        rejected = [RejectedEntry(key=key, reason="The service rejects it.", status=422) for key in some]
        self.run(self.mirror.delivery.acknowledge_some(claim, delivered=[], rejected=rejected))
        self.acknowledged[claim] = self.acknowledged.get(claim, set()) | set(some)
        self.refused.update(some)

    @rule()
    def retry(self) -> None:
        rejected = self.mirror.status.count(EVERYTHING)
        done = self.run(self.mirror.rejected.retry(EVERYTHING))
        assert done.entries <= rejected
        assert self.mirror.status.count(EVERYTHING) == 0, "this mirror rejects only entries"

    @rule(key=KEYS)
    def drop(self, key: str) -> None:
        if self.run(self.mirror.rejected.drop(Selection(key=key))):
            self.dropped.add(key)

    @rule(key=KEYS, value=st.none() | VALUES)
    def another_program_writes(self, key: str, value: str | None) -> None:
        if value is None:
            self.service.pop(key, None)
        else:
            self.service[key] = value
        self.strange.add(key)

    @rule(mode=st.sampled_from(["report", "repair", "repair and remove", "adopt"]), between=st.booleans())
    def check_drift(self, mode: str, between: bool) -> None:
        sink = self.sink_id()
        if sink is None:
            return
        found = self.compare(sink, between=between)
        assert found <= self.strange | self.left, "our own writes are no drift"
        if not between and not self.claims and self.mirror.status.pending() == 0:
            excused = self.refused | self.dropped | self.adopted | self.left
            differ = {key for key, value in self.wanted.items() if self.service.get(key) != value}
            assert differ - excused <= found, "changes by other programs to our entries are found"
        if mode == "adopt":
            self.run(self.mirror.drift.adopt_drift(sink, [self.pipeline]))
            self.adopted |= found
        elif mode != "report":
            self.run(self.mirror.drift.repair(sink, [self.pipeline], remove_added=mode == "repair and remove"))

    def compare(self, sink: int, *, between: bool = False) -> set[str]:
        """Check the whole sink; ``between``: a claim that is delivered after the sink was read. Return the differing keys."""
        check = self.run(self.mirror.drift.begin_check(sink))
        self.run(self.mirror.drift.show(check, self.held_by_service()))
        # A later delivery overwrites the change of another program that was read.
        strange = self.strange | self.left
        if between and self.claims:
            self.deliver(0)
        status = self.run(self.mirror.drift.end_check(check))
        findings = self.mirror.status.drift([self.pipeline], limit=100).findings
        assert status.found == len(findings)
        found = {finding.key for finding in findings}
        assert found <= strange
        return found & (self.strange | self.left) if between else found

    @rule(name=st.integers(0, 1))
    def remove_file_and_prune(self, name: int) -> None:
        """Archive or delete a delivered file; unreferenced rows are pruned, and nothing else changes."""
        self.reader.acknowledge_partitions()
        partition = self.names[name % len(self.names)]
        content = self.script.contents.get(partition)
        if content is not None and (partition, content.version) in self.script.acknowledged:
            self.script.take_away(partition)
        for identity, known in self.mirror.intake.pruner.old_partitions(self.pipeline):
            if known not in self.script.contents:
                self.mirror.intake.pruner.note_gone(identity)
        self.mirror.intake.pruner.prune()
        for key in self.wanted.keys() - self.refused - self.dropped - self.strange - self.adopted - self.left:
            assert all(origin.read_at is not None for origin in self.mirror.status.origins(key)), key

    @rule()
    def crash(self) -> None:
        # A killed process leaves only committed pages, and no claim. Closing the handles writes nothing more.
        self.mirror.close()
        self.claims.clear()
        self.open()

    @rule()
    def the_pipeline_is_renamed(self) -> None:
        """Rename the pipeline; its state is kept."""
        before = self.pipeline
        has_read = any(one.name == before and one.partitions for one in self.mirror.status.pipelines())
        self.mirror.close()
        self.claims.clear()
        self.pipeline = "other" if before == "pipe" else "pipe"
        self.open()
        assert self.renamed == ([(before, self.pipeline)] if has_read else [])

    # With kept vanished rows, and with two partitions of one key, only the state file knows the expected content.
    @precondition(lambda self: not self.claims and self.script.deletes == "remove")
    @rule()
    def the_state_file_is_lost(self) -> None:
        """Lose the state file: the service is read back, the sources are read again; other entries are unexplained."""
        self.mirror.close()
        (self.folder / "state.db").unlink()
        self.backup = None
        self.open()
        self.known, self.withheld, self.wanted = set(), {}, {}
        self.mirror_starts_over()
        sink = self.sink_id()
        if sink is None:
            return
        self.run(self.mirror.delivery.adopt(sink, self.held_by_service()))
        unexplained = self.mirror.status.unexplained([self.pipeline], limit=100).entries
        assert {one.key for one in unexplained} == self.left, "entries that no source names are listed"

    def mirror_starts_over(self) -> None:
        """Read the sources, and expect only their present content; all other entries in the service are unexplained."""
        self.unread = set(self.script.contents)
        self.read()
        self.undoable, self.was_rolled_back = None, False
        self.left = set(self.service) - self.wanted.keys()
        for excuse in (self.refused, self.dropped, self.strange, self.adopted):
            excuse.clear()

    @precondition(lambda self: not self.claims and self.script.deletes == "remove")
    @rule()
    def the_state_file_is_saved(self) -> None:
        self.crash()
        self.mirror.close()
        self.backup = self.folder / "backup.db"
        shutil.copyfile(self.folder / "state.db", self.backup)
        self.saved_name = self.pipeline
        self.saved_excuses = (set(self.refused), set(self.dropped), set(self.adopted))
        self.saved_runs = (self.wanted, set(self.known), dict(self.withheld))
        self.open()

    @precondition(lambda self: not self.claims and self.backup is not None)
    @rule()
    def an_older_state_file_is_put_back(self) -> None:
        """Restore an older copy: the sink ends at the present content of the sources."""
        assert self.backup is not None
        self.mirror.close()
        shutil.copyfile(self.backup, self.folder / "state.db")
        self.pipeline = self.saved_name
        self.open()
        wanted, known, withheld = self.saved_runs
        self.wanted, self.known = wanted if "p" in self.script.contents else {}, set(known)
        self.withheld = {name: run for name, run in withheld.items() if name in self.script.contents}
        self.mirror_starts_over()
        sink = self.sink_id()
        self.refused, self.dropped, self.adopted = (set(keys) for keys in self.saved_excuses)
        if sink is None:
            return
        # The real daemon compares only if the sequence file requires it; comparing with the newest copy is permitted, too.
        self.run(self.mirror.delivery.remember_sink(sink, workspace_id="w", sink_id="s", adopted=True))
        self.mirror.close()
        self.mirror_sequence().write_text("")
        self.open()
        self.read()
        check = self.run(self.mirror.drift.begin_check(sink))
        self.run(self.mirror.drift.show(check, self.held_by_service()))
        self.run(self.mirror.drift.end_check(check, doubt=True))
        assert self.mirror.status.doubts() == []
        if self.withheld:  # until a person decides, what the service has counts as newer than the copy
            self.adopted |= {key for key, value in self.wanted.items() if self.service.get(key) != value}

    def mirror_sequence(self) -> Path:
        return self.folder / ".state.db.sequence"

    @rule()
    def the_service_is_replaced(self) -> None:
        sink = self.sink_id()
        if sink is None or self.claims:
            return
        self.service.clear()
        # Whether a key in `left` comes back depends on whether it had been delivered before it was released.
        self.run(self.mirror.delivery.forget_sink(sink))
        # An adopted value, or an adopted removal of a key, is valid until its record is mapped again.
        for excuse in (self.refused, self.dropped, self.strange):
            excuse.clear()

    @rule(strange=st.dictionaries(KEYS, VALUES, max_size=3))
    def the_sink_is_adopted(self, strange: dict[str, str]) -> None:
        """Adopt the present values of the service; nothing that the sources want is lost."""
        self.undoable = None
        sink = self.sink_id()
        if sink is None or self.claims:
            return
        for key, value in strange.items():
            if key not in self.named:
                self.service[key] = value
        self.run(self.mirror.delivery.adopt(sink, self.held_by_service()))
        self.found |= self.service.keys() - self.named
        # From now on these count as existing before.
        self.adopted |= self.strange

    def held_by_service(self) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "key": list(self.service),
                "value": list(self.service.values()),
                "data_type": ["scalar"] * len(self.service),
            },
            schema={"key": pl.String, "value": pl.String, "data_type": pl.String},
        )

    @invariant()
    def former_values_are_bounded_and_explained(self) -> None:
        if not hasattr(self, "mirror"):
            return
        for key in ("a", "b", "c", "d"):
            former = self.mirror.status.former_values(key)
            assert len(former) <= MOST
            assert all(one.read_at is not None or not one.run for one in former), (
                "a run that explains a value was pruned"
            )
            assert all(newer.ended_at >= older.ended_at for newer, older in pairwise(former))

    @invariant()
    def nothing_pending_means_equal(self) -> None:
        if hasattr(self, "mirror") and not self.claims and self.mirror.status.pending() == 0:
            self.compare_but(self.refused | self.dropped | self.strange | self.adopted | self.left)

    def compare_but(self, excused: set[str]) -> None:
        """Check the service for all keys that a source has named, except these."""
        ours = {key: value for key, value in self.service.items() if key in self.named - excused}
        wanted = {key: value for key, value in self.wanted.items() if key not in excused}
        assert ours == wanted, (ours, wanted, self.service)

    def drain(self) -> None:
        """Deliver all that is pending."""
        sink = self.sink_id()
        while sink and (claim := self.run(self.mirror.delivery.claim(sink, max_items=2, max_bytes=10_000))):
            self.apply(claim)
            self.run(self.mirror.delivery.acknowledge(claim))
        assert self.mirror.status.pending() == 0

    def sweep(self, sink: int) -> None:
        """Remove unexplained entries: none of such keys stays in the service."""
        check = self.run(self.mirror.drift.begin_check(sink))
        self.run(self.mirror.drift.show(check, self.held_by_service()))
        status = self.run(self.mirror.drift.end_check(check, unexplained="remove"))
        self.drain()
        assert status.unexplained == 0
        assert set(self.service) <= self.wanted.keys() | self.dropped | self.adopted
        self.left.clear()

    def teardown(self) -> None:
        if not hasattr(self, "mirror"):
            return
        while self.claims:
            self.deliver(0)
        self.read()
        while any(self.withheld.values()):
            self.approve(0)
        self.read()
        self.retry()
        self.drain()
        sink = self.sink_id()
        if sink:
            self.compare(sink)
            self.run(self.mirror.drift.repair(sink, [self.pipeline], remove_added=True))
            self.drain()
            if self.script.deletes == "remove" and not self.withheld:
                self.sweep(sink)
        self.compare_but(self.dropped | self.adopted | self.left)
        self.reader.acknowledge_partitions()
        for name, content in self.script.contents.items():
            is_acknowledged = (name, content.version) in self.script.acknowledged
            assert is_acknowledged or name in self.withheld, "a delivered partition was not acknowledged"
        self.mirror.close()
        self.runner.close()
        shutil.rmtree(self.folder)
        self.patch.undo()


EVERYTHING = Selection()

EXAMPLES = int(os.environ.get("INGESTD_MODEL_EXAMPLES", "60"))
"""Examples of 50 steps each; `make model-test` runs 1,000."""

MirrorModel.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestMirrorModel = pytest.mark.slow(pytest.mark.timeout(600 + 5 * EXAMPLES)(MirrorModel.TestCase))


def test_a_reading_writes_what_an_approval_leaves_open() -> None:
    """The run took entries over from the sink, so its differences do not show which record owns a key."""
    state = MirrorModel()
    columns = {name: ColumnContract(type="text") for name in ("k", "v", "other")}
    state.start(
        deletes="keep", batch_rows=2, guard=Guard(removed_percent=50), contract=Contract(columns=columns, new="hold")
    )
    state.write_and_read(name=0, rows=[], extra=True)
    state.write_and_read(
        name=0, rows=[{"k": "d", "v": "", "other": ""}, {"k": "b", "v": "1", "other": "1"}], extra=True
    )
    assert state.withheld
    state.the_sink_is_adopted(strange={"b": "", "c": "1", "d": "1"})
    state.approve(0)
    assert state.mirror.status.held_runs() == []
    state.teardown()


def test_an_approved_run_that_was_rolled_back_removes_its_entries_again() -> None:
    state = MirrorModel()
    state.start(deletes="remove", batch_rows=1, guard=GUARDS[0], contract=None)
    a, b = ({"k": key, "v": "1", "other": "1"} for key in "ab")
    state.write_and_read(name=0, rows=[a, b], extra=False)
    state.write_and_read(name=0, rows=[b], extra=False)
    state.roll_back(crashes=False)
    state.approve(0)
    state.drain()
    assert state.service == {"b": "1"}
    state.teardown()


def test_an_approved_empty_reading_is_not_held_again() -> None:
    """The source is written again while its run is held. A key with two values had the whole source mapped."""
    state = MirrorModel()
    state.start(deletes="keep", batch_rows=1, guard=GUARDS[1], contract=None)
    state.write_and_read(name=0, rows=[{"k": "d", "v": value, "other": ""} for value in ("2", "")], extra=False)
    state.write_and_read(name=0, rows=[], extra=False)
    state.write_and_read(name=0, rows=[], extra=False)
    assert state.withheld
    state.approve(which=0)
    state.read()
    state.teardown()
