"""One simulation from its seed to its result: what is written, what happens, and the invariants."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, cast

from ingestd.client.writer import RisingWriter
from ingestd.core.address import SinkAddress
from ingestd.core.errors import RunNotHeld
from ingestd.core.guard import DEFAULT_GUARD, Guard
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import CheckDrift, Explain, ReadNotices, Reload, Request, RetryRejected
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.intake import Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.mirror.sqlite.drift.drift_store import DriftStore
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import PartFailed
from ingestd.telemetry.catalogue.drift import DriftFound, DriftRepaired
from ingestd.telemetry.catalogue.intake import RunHeld
from ingestd.wire.writer import Writer
from tests.simulation.commands import Command, Manner, find_mistake
from tests.simulation.configurations import WORKSPACE, Version, configuration
from tests.simulation.daemon import EPOCH, Daemon
from tests.simulation.loop import SimulatedLoop, run_inline
from tests.simulation.mirrors import StateFolder, ThreadedCommands, ThreadedMirror
from tests.simulation.plan import Action, Kind, Plan, plan_of
from tests.simulation.service import RecordingStore, SimulatedService
from tests.simulation.sources import DirectReader, WatchedSource
from tests.simulation.traced_world import TracedWorld, Violation
from tests.support.bulk_service import BulkService
from tests.support.memory_mirror import MemoryMirror
from tests.support.scripted_source import Row, Script
from tests.support.supervised_parts import FailedParts

RECOVERY_SECONDS = 900.0
"""Everything is delivered within this time after the last fault: three of the longest waits."""

RESPONSE_SECONDS = 300.0
"""A running daemon responds to a command within this time, also while the service does not respond."""

DRAIN_SECONDS = 8.0
"""The time that the daemon has for an orderly stop."""

MAPPING = Mapping([EntrySpec(key="{k}", value="{v}")])
_GUARDS = (DEFAULT_GUARD, Guard(removed_percent=30, changed_percent=50, empty=True, minimum=2), Guard(types=True))
"""The guards of the pipelines, in turn. The last one holds no run here, but its runs are staged."""

_OPERATOR_SECONDS = 10.0
"""An operator approves a held run within this time."""
_MANNERS: dict[Manner, float] = {"waits": 6, "leaves": 1, "sends half": 0.5, "sends nothing": 0.3}
_COMMANDS = ("retry", "retry", "report", "report", "repair", "repair", "reload", "reload", "notices", "explain")
_VERSIONS: tuple[Version, ...] = ("first", "first", "other key", "mistaken")
_LAST_LINES = 120


@dataclass(slots=True)
class Pipeline:
    """One source and its sink. ``wanted``: the expected content of the sink; ``rows``: of its only partition."""

    name: str
    sink: SinkAddress
    script: Script
    source: WatchedSource
    wanted: dict[str, str] = field(default_factory=dict)


class World(TracedWorld):
    """Runs one plan."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self._content_numbers = random.Random(f"content {plan.seed}")
        self._command_numbers = random.Random(f"commands {plan.seed}")
        self._scheduling_numbers = random.Random(f"scheduling {plan.seed}")
        self._jitter_numbers = random.Random(f"jitter {plan.seed}")
        self._operator_numbers = random.Random(f"operator {plan.seed}")
        self._now = 1_000.0
        self._starts = 0
        self._newest: dict[tuple[str, str], int] = {}
        self._stopping = False
        self._daemon: Daemon | None = None
        self._commands: list[Command] = []
        self._changed_by_others: set[str] = set()
        self._loop = SimulatedLoop(self._scheduling_numbers, now=self._now, thread_seconds=plan.thread_seconds)
        self._loop.close()
        store = RecordingStore(mass_creates=plan.mass_creates, written=self._written)
        inner = BulkService(
            store=store,
            max_items=plan.max_items,
            announce=plan.announce,
            partial=plan.partial,
            replay=plan.replay,
            fence=plan.fence,
            bad=lambda key: key.startswith("bad"),
        )
        self.service = SimulatedService(
            random_numbers=random.Random(f"service {plan.seed}"),
            inner=inner,
            trace=self._trace,
            latency_seconds=plan.latency_seconds,
        )
        workspace = str(store.create_workspace({"id": WORKSPACE, "label": "Bench"})["id"])
        self._watchers: dict[str, Callable[[], None]] = {}
        self.pipelines = [self._pipeline(number, workspace) for number in range(plan.sinks)]
        self._instant_actions: dict[Kind, Callable[[Pipeline], None]] = {
            "change": self._change,
            "touch": self._touch,
            "commands": self._give_commands,
            "foreign change": self._change_in_service,
            "source away": self._source_away,
            "sink deleted": self._delete,
        }
        self._memory = MemoryMirror()
        self._folder = StateFolder()
        if plan.records:
            self._folder.fill()
        self._file: SqliteMirror | None = None

    def _pipeline(self, number: int, workspace: str) -> Pipeline:
        name = f"p{number}"
        script = Script(deletes="remove" if self.plan.removes and self.plan.records else "keep", batch_rows=1)
        # With every other seed rescans come too late, so that a lost event becomes visible.
        rescan_seconds = 3.0 if self.plan.seed % 2 else 86_400.0
        source = WatchedSource(script, watchers=self._watchers, name=name, rescan_seconds=rescan_seconds)
        sink = SinkAddress(workspace=workspace, by="label", name=f"Sink {number}")
        return Pipeline(name=name, sink=sink, script=script, source=source)

    # ------------------------------------------------------------------------------------------------ the run

    def run(self) -> None:
        """Execute the plan, then verify the end.

        Raises:
            Violation: An invariant was violated.
        """
        try:
            self._perform(
                self._start, self._act, self._recover, self._repair, self._compare, self._stay_quiet, self._end
            )
        finally:
            self._kill()
            self._folder.remove()

    def _act(self) -> None:
        began = self._now
        ends: list[tuple[float, Callable[[], None]]] = []
        for action in self.plan.actions:
            self._advance_until(began + action.at, ends)
            self._trace(f"** {action}")
            end = self._start_action(action)
            if end is not None:
                ends.append((self._now + action.seconds, end))
        while ends:
            self._advance_until(min(at for at, _ in ends), ends)
        if self._daemon is None:
            self._start()
        self._trace("** no more faults from now on")

    def _advance_until(self, at: float, ends: list[tuple[float, Callable[[], None]]]) -> None:
        """Let time pass; end each outage that is due at its time."""
        while due := [one for one in ends if one[0] <= at]:
            first = min(due, key=lambda one: one[0])
            self._run_loop(first[0])
            ends.remove(first)
            first[1]()
        if at > self._now:  # else it happens together with what comes before it
            self._run_loop(at)

    def _run_loop(self, until: float, done: Callable[[], bool] = lambda: False) -> str:
        end = self._loop.run(until, done) if self._daemon is not None else "asleep"
        self._now = max(self._now, self._loop.time(), until if end != "done" else 0.0)
        if end == "asleep" and self._daemon is not None:
            self._loop.skip_to(self._now)
        if self._violation:
            self._fail(self._violation)
        if self._loop.failures:
            self._fail("; ".join(self._loop.failures))
        for command in list(self._commands):
            if (self._now if command.ended_at is None else command.ended_at) > command.asked_at + RESPONSE_SECONDS:
                self._fail(f"no response after {RESPONSE_SECONDS} s: {command}")
            if command.ended_at is not None:
                self._check_command(command)
        if self._daemon is not None and self._daemon.task.done() and not self._stopping:
            error = self._daemon.task.exception()
            self._fail("the daemon ended: " + "".join(traceback.format_exception(error)) if error else "it ended")
        return end

    def _start_action(self, action: Action) -> Callable[[], None] | None:
        """Start an action; return what ends it, if it has an end."""
        pipeline = self.pipelines[action.which % len(self.pipelines)]
        match action.kind:
            case "outage":
                self.service.outage = action.fault
                return self._outage_over
            case "storm":
                self.service.share, self.service.kinds = action.share, action.kinds
                return self._storm_over
            case "crash":
                self._kill()
                return self._start
            case "stop":
                self._stop()
                return self._start
            case "change all":
                for one in self.pipelines:
                    self._change(one)
        if action.kind in self._instant_actions:
            self._instant_actions[action.kind](pipeline)
        return None

    # --------------------------------------------------------------------------------------------- what happens

    def _change(self, pipeline: Pipeline) -> None:
        """Write new content: some keys with new values, some unchanged, some gone if the source removes."""
        before = {str(row["k"]): str(row["v"]) for row in self._rows(pipeline)}
        rows: dict[str, str] = {} if pipeline.script.deletes == "remove" else dict(before)
        for number in range(self.plan.keys):
            key = f"bad{number}" if self.plan.bad_keys and number == 0 else f"k{number}"
            draw = self._content_numbers.random()
            if draw < 0.6:
                rows[key] = self._new_value()
            elif key in before and (draw < 0.8 or key.startswith("bad")):  # the service would reject its removal, too
                rows[key] = before[key]
            elif draw < 0.9:
                rows[f"t{number}"] = self._content_numbers.choice("AB")  # alternates between two types
        content: list[Row] = [{"k": key, "v": value} for key, value in rows.items()]
        pipeline.script.write("part", content)
        if pipeline.script.deletes == "remove":
            pipeline.wanted = rows
        else:
            pipeline.wanted |= rows
        self._trace(f"   {pipeline.name}: " + " ".join(f"{key}={value}" for key, value in rows.items()))
        self._wake(pipeline)

    def _rows(self, pipeline: Pipeline) -> list[Row]:
        return pipeline.script.contents["part"].rows if "part" in pipeline.script.contents else []

    def _touch(self, pipeline: Pipeline) -> None:
        if "part" in pipeline.script.contents:
            pipeline.script.write("part", self._rows(pipeline))
            self._wake(pipeline)

    def _wake(self, pipeline: Pipeline) -> None:
        wake = self._watchers.get(pipeline.name)
        if wake is not None:
            self._loop.call_soon(wake)

    def _outage_over(self) -> None:
        self._trace("** the service is back")
        self.service.outage = None

    def _storm_over(self) -> None:
        self._trace("** no more faults")
        self.service.share = 0.0

    def _source_away(self, pipeline: Pipeline) -> None:
        pipeline.source.away = self._content_numbers.randint(1, 3)
        self._wake(pipeline)

    def _change_in_service(self, pipeline: Pipeline) -> None:
        """Change or remove one of the daemon's entries in the service, as another program would."""
        store = self.service.inner.store
        for sink in store.by_label(pipeline.sink.name):
            ours = [key for key in store.entries[sink] if key in pipeline.wanted and not key.startswith("bad")]
            if ours:
                key = self._command_numbers.choice(ours)
                self._changed_by_others.add(str(pipeline.sink))
                if self._command_numbers.random() < 0.5:
                    store.patch_entry(pipeline.sink.workspace, sink, key, {"value": "changed"})
                else:
                    store.delete_entry(pipeline.sink.workspace, sink, key)
                self._trace(f"   {pipeline.name}: {key} is changed by another program")

    def _give_commands(self, pipeline: Pipeline) -> None:
        """Send commands, sometimes several at a time."""
        for _ in range(self._command_numbers.choice((1, 1, 1, 2, 4))):
            manner = self._command_numbers.choices(list(_MANNERS), weights=list(_MANNERS.values()))[0]
            self._ask(self._request(pipeline), manner)

    def _request(self, pipeline: Pipeline) -> Request:
        match self._command_numbers.choice(_COMMANDS):
            case "retry":
                return RetryRejected(selection=Selection())
            case "reload":
                return Reload()
            case "notices":
                return ReadNotices()
            case "explain":
                return Explain(pipeline=pipeline.name, partition="part", cursor=None)
            case mode:
                other = self._command_numbers.choice(self.pipelines)
                if mode == "repair":
                    self._change_in_service(pipeline)
                names = tuple(dict.fromkeys((pipeline.name, other.name)))
                return CheckDrift(pipelines=names, mode="repair" if mode == "repair" else "report")

    def _ask(self, request: Request, manner: Manner) -> None:
        if self._daemon is None:
            return
        command = Command(request, manner, loop=self._loop, random_numbers=self._command_numbers)
        self._trace(f"   asked: {command}")
        self._commands.append(command)
        self._loop.call_soon(command.connect)

    def _check_command(self, command: Command) -> None:
        """Check the result of a command after its connection has ended."""
        self._commands.remove(command)
        self._trace(f"   {command}: {command.response.decode().strip()[:200]}")
        if command.manner != "waits":
            self.counts["clients that left or were silent"] += 1
            return
        if wrong := find_mistake(command, stopping=self._stopping):
            self._fail(wrong)
        if not command.was_not_listening:
            self.counts["commands during a stop" if self._stopping else "commands with a response"] += 1

    def _reread(self) -> Configuration:
        """Return the configuration as a reload reads it."""
        return configuration(self._command_numbers.choice(_VERSIONS))

    def _delete(self, pipeline: Pipeline) -> None:
        store = self.service.inner.store
        for sink in store.by_label(pipeline.sink.name):
            store.delete_sink(pipeline.sink.workspace, sink)

    # ---------------------------------------------------------------------------------------------- runs

    def _start(self) -> None:
        if self._daemon is not None:
            return
        self._trace("** the daemon starts")
        self._starts += 1
        self._loop = SimulatedLoop(
            self._scheduling_numbers,
            now=self._now,
            thread_seconds=self.plan.thread_seconds,
            pausing=("source",) if self.plan.records else (),
        )
        readers: list[Reader | DirectReader]
        if self.plan.records:
            self._file = self._folder.open(lambda: self._now)
            self._file.intake.activate([pipeline.name for pipeline in self.pipelines])
            readers = [
                Reader(
                    pipeline=one.name,
                    connector=one.source,
                    mapping=MAPPING,
                    sink=one.sink,
                    mirror=self._file.intake,
                    emit=self._emit,
                    guard=_GUARDS[number % len(_GUARDS)],
                    clock=self._loop.time,
                )
                for number, one in enumerate(self.pipelines, start=self.plan.seed)
            ]
            for held in self._file.status.held_runs():
                self._approve_later(held.run)
        else:
            direct = [DirectReader(one.name, one.source, mirror=self._memory, sink=one.sink) for one in self.pipelines]
            for reader in direct:
                reader.on_pending = self._on_pending
            readers = list(direct)
        asked = ThreadedCommands(self._memory, self._on_pending)
        self._daemon = Daemon(
            self._loop,
            readers=readers,
            mirror=self._file.delivery
            if self._file is not None
            else cast("DeliveryStore", ThreadedMirror(self._memory, self._on_pending)),
            drift=self._file.drift if self._file is not None else cast("DriftStore", asked),
            rejected=self._file.rejected if self._file is not None else cast("RejectedStore", asked),
            state=self._folder.path,
            read_again=self._reread,
            failed_parts=self._file.failed_parts if self._file is not None else FailedParts(),
            transport=self.service,
            emit=self._emit,
            random_numbers=self._jitter_numbers,
            limits=DeliveryLimits(in_flight_at_most=8),
            writer=RisingWriter(
                self._file.sequence.writer
                if self._file is not None
                else Writer(name="simulation", epoch=1, attempt=1_000_000 * self._starts)
            ),
            now=lambda: EPOCH + self._loop.time(),
            stop=asyncio.Event(),
        )
        self._daemon.start()
        if self._file is not None:
            self._file.on_pending = self._on_pending

    def _on_pending(self, sink: int) -> None:
        if self._daemon is not None:
            self._daemon.wake(sink)

    def _stop(self) -> None:
        daemon = self._daemon
        if daemon is None:
            return
        began = self._loop.time()
        self._stopping = True
        daemon.stop()
        # Slow threads are no fault of the daemon; a real process would be killed and continue from its state file.
        seconds = DRAIN_SECONDS + 8 * self.plan.sinks * self.plan.thread_seconds
        if self._run_loop(began + seconds, daemon.task.done) != "done":
            self._fail(f"the daemon did not end within {seconds} s of being asked to")
        if (error := daemon.task.exception()) is not None:
            self._fail("the daemon failed while it ended: " + "".join(traceback.format_exception(error)))
        self._loop.finish_threads()
        self._end_commands(killed=False)
        self._loop.close()
        self._put_down()

    def _kill(self) -> None:
        if self._daemon is None:
            return
        self._daemon = None
        self._end_commands(killed=True)
        self._loop.kill()
        self.service.client_died()
        self._put_down()

    def _end_commands(self, *, killed: bool) -> None:
        """Close the connections of a killed process; an orderly stop has closed them already."""
        for command in list(self._commands):
            if not killed:
                self._fail(f"the daemon has ended, but its connection is still open: {command}")
            self.counts["commands cut off by a kill"] += 1
            self._commands.remove(command)

    def _put_down(self) -> None:
        self._daemon = None
        self._stopping = False
        self._watchers.clear()
        self._memory.forget_claims()
        if self._file is not None:
            self._file.close()
            self._file = None

    # ------------------------------------------------------------------------------------------ what must hold

    def _written(self, label: str, key: str, value: str | None) -> None:
        """Check that a written value is not older than an earlier one."""
        if value is None or not value.isdigit():
            return
        newest = self._newest.get((label, key), 0)
        if int(value) < newest:
            self._violate(f"{label}: {key} went from {newest} back to {value}")
        self._newest[label, key] = int(value)

    def _approve_later(self, run: int) -> None:
        """Have the operator approve a held run within a few seconds, unless another run has replaced it."""

        def approve(world: SqliteMirror) -> None:
            if world is not self._file or self._daemon is None:
                return  # the daemon was killed
            try:
                world.intake.approve(run)
            except RunNotHeld:
                return
            self._trace(f"** run {run} is approved")
            self.counts["approved runs"] += 1
            for pipeline in self.pipelines:
                self._wake(pipeline)

        self._loop.call_later(self._operator_numbers.uniform(0, _OPERATOR_SECONDS), approve, self._file)

    def _emit(self, event: Event) -> None:
        if self._daemon is None:
            return  # events from the clean-up of a killed daemon do not exist
        if isinstance(event, RunHeld):
            self._approve_later(event.run)
        self.trace.append((self._loop.time(), event))
        self.counts["repairs"] += isinstance(event, DriftRepaired)
        if isinstance(event, PartFailed):
            self._violate(f"{event.part} failed: {event.sentence}\n{event.traceback}")
        if isinstance(event, DriftFound) and event.sink not in self._changed_by_others:
            self._violate(f"no other program writes, but {event.sink} differs: {event}")

    def _recover(self) -> None:
        """Check that everything is delivered in bounded time, and that no lane sleeps while an entry waits for it."""
        limit = self._now + RECOVERY_SECONDS
        end = self._run_loop(limit, self._all_delivered)
        if end == "asleep" and not self._all_delivered():
            self._fail("nothing is scheduled any more, but not everything is delivered")
        if end == "time":
            self._fail(f"not everything is delivered {RECOVERY_SECONDS} s after the last fault")
        if self._daemon is not None and (drain := self._daemon.drain()) is not None:
            if self._run_loop(self._now + RECOVERY_SECONDS, drain.done) != "done":
                self._fail("everything is delivered, but a waiting drain does not end")
            self._daemon.asked.discard(drain)

    def _repair(self) -> None:
        """Check that one undisturbed repair restores what another program has changed."""
        changed = tuple(one.name for one in self.pipelines if str(one.sink) in self._changed_by_others)
        if not changed:
            return
        self._ask(CheckDrift(pipelines=changed, mode="repair"), "waits")
        if self._run_loop(self._now + RECOVERY_SECONDS, self._all_delivered) != "done":
            self._fail("what a repair sends again is not delivered")

    def _all_delivered(self) -> bool:
        for pipeline in self.pipelines:
            for name, content in pipeline.script.contents.items():
                if (name, content.version) not in pipeline.script.acknowledged:
                    return False
        return not self._commands_wait() and self._pending() == 0

    def _commands_wait(self) -> bool:
        return any(command.ended_at is None for command in self._commands)

    def _pending(self) -> int:
        if self._file is not None:
            return self._file.status.pending()
        return sum(lane.pending for lane in run_inline(self._memory.lanes()))

    def _rejected(self) -> int:
        if self._file is not None:
            return self._file.status.count(Selection())
        return self._memory.count(Selection())

    def _compare(self) -> None:
        """Check that the service holds the last value of each key, also after all late writes have arrived.

        Rejected keys are stored as rejected, each once.
        """
        self.service.let_arrive(1.0)
        if self._violation:
            self._fail(self._violation)
        store = self.service.inner.store
        refused = 0
        for pipeline in self.pipelines:
            wanted = {key: value for key, value in pipeline.wanted.items() if not key.startswith("bad")}
            refused += len(pipeline.wanted) - len(wanted)
            sinks = store.by_label(pipeline.sink.name)
            if len(sinks) > 1:
                self._fail(f"{pipeline.sink} was created {len(sinks)} times")
            held = {key: value for key, (value, _) in store.values(sinks[0]).items()} if sinks else {}
            if sinks or wanted:
                lost = not sinks or held != wanted
                if lost and not self._was_deleted(pipeline):
                    self._fail(f"{pipeline.sink} should hold {wanted}, but holds {held}")
        if self._rejected() != refused:
            self._fail(f"{refused} entries are refused by the service, but {self._rejected()} are rejected")

    def _was_deleted(self, pipeline: Pipeline) -> bool:
        """Return whether the sink was deleted: without pending entries this is noticed only at the next change."""
        deleted = [one for one in self.plan.actions if one.kind == "sink deleted"]
        return any(self.pipelines[one.which % len(self.pipelines)] is pipeline for one in deleted)

    def _stay_quiet(self) -> None:
        """Check that nothing is sent if nothing changed."""
        self._run_loop(self._now + 5.0)
        writes = self.service.writes
        self._trace("** every source is touched, nothing has changed")
        for pipeline in self.pipelines:
            self._touch(pipeline)
        limit = self._now + RECOVERY_SECONDS
        if self._run_loop(limit, self._all_delivered) != "done":
            self._fail("a source that was touched is not acknowledged")
        self._run_loop(self._now + 5.0)
        if self.service.writes != writes:
            self._fail(f"nothing has changed, but {self.service.writes - writes} requests write")

    def _end(self) -> None:
        self._stop()
        self.counts["late arrivals"] = self.service.late_arrivals
        self.counts["readings ended by a stop"] = sum(one.source.stopped_readings for one in self.pipelines)
        if self._loop.failures:
            self._fail("; ".join(self._loop.failures))

    # ------------------------------------------------------------------------------------------------ the trace

    def _trace(self, line: str) -> None:
        self.trace.append((max(self._now, self._loop.time()), line))

    def _fail(self, reason: str) -> NoReturn:
        lines = self.lines()[-_LAST_LINES:]
        description = self._daemon.description() if self._daemon is not None else []
        again = f"make simulate SEED={self.plan.seed}"
        raise Violation("\n".join([str(self.plan), *lines, *description, "", reason, f"Once more: {again}"]))


def simulate(seed: int | Plan) -> World:
    """Run the simulation of a seed, or of a plan from a test.

    Raises:
        Violation: An invariant was violated; the message has the trace.
    """
    world = World(seed if isinstance(seed, Plan) else plan_of(seed))
    world.run()
    return world
