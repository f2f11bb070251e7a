"""One simulation of several hosts of a configuration, from its seed to its result: what happens, and the invariants."""

from __future__ import annotations

import heapq
import math
import random
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import NoReturn

from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.core.guard import Guard
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.requests import ControlStandby, DecideRun, Request
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Connector, SourceBroken
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import PartFailed
from ingestd.telemetry.catalogue.standby import LeaseLost, LeaseTaken, SinksReadBack
from ingestd.wire.writer import Writer
from tests.simulation.commands import Command
from tests.simulation.configurations import WORKSPACE, configuration
from tests.simulation.daemon import EPOCH
from tests.simulation.host import Host, HostProcess
from tests.simulation.host_plan import HostAction, HostKind, HostPlan, host_plan_of
from tests.simulation.host_sources import ArchivedSource, PushedSource, Sender, SharedSource
from tests.simulation.leases import LeaseTable, is_about_lease, stamp
from tests.simulation.service import RecordingStore, SimulatedService
from tests.simulation.shipping_place import SimulatedPlace
from tests.simulation.sources import WatchedSource
from tests.simulation.traced_world import TracedWorld, Violation
from tests.simulation.world import MAPPING, RECOVERY_SECONDS
from tests.simulation.write_checks import WriteChecks
from tests.support.bulk_service import BulkService
from tests.support.scripted_source import Content, Row, Script

_GUARD = Guard(removed_percent=30, empty=True, minimum=2)
_DRAIN_SECONDS = 16.0
"""The process ends this long after it was asked to: for the drain and the last shipment."""
_RESTART_SECONDS = 1.0
"""The service manager starts a process that ended by itself again after this time."""
_OPERATOR_SECONDS = 5.0
_QUIET_SECONDS = 5.0
_LAST_LINES = 300
_FREEZE_SECONDS = 2.0
_SLOW_CALLS = 20
_STORM_SHARE = 0.3
_PLACE_FACTOR = 4.0
"""A fault of the place lasts this many times longer than one of a host, to last longer than the time between shipments."""


class HostWorld(TracedWorld):
    """Runs one plan."""

    def __init__(self, plan: HostPlan) -> None:
        super().__init__()
        self.plan = plan
        self._content_numbers = random.Random(f"content {plan.seed}")
        self._scheduling_numbers = random.Random(f"scheduling {plan.seed}")
        self._jitter_numbers = random.Random(f"jitter {plan.seed}")
        self._operator_numbers = random.Random(f"operator {plan.seed}")
        self._now = 1_000.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._checks = WriteChecks(violate=self._violate, counts=self.counts, now=self._service_time)
        self._freezing: dict[HostProcess, float] = {}
        self.hosts = [Host(f"host{n}", set_off=wall, started_off=up) for n, (wall, up) in enumerate(plan.clocks, 1)]
        self._place = SimulatedPlace(shipped=lambda name: self._trace(f"   shipped {name}"))
        store = _StampedStore(written=self._checks.note_written, now=self._service_time)
        inner = BulkService(
            store=store,
            max_items=plan.max_items,
            announce=plan.announce,
            partial=plan.partial,
            replay=plan.replay,
        )
        self.service = SimulatedService(
            random_numbers=random.Random(f"service {plan.seed}"),
            inner=inner,
            trace=self._trace,
            latency_seconds=plan.latency_seconds,
            hold_seconds=2.0 * plan.lease_seconds,
            leases=LeaseTable(now=self._service_time, raise_writer=self._raise_writer),
            sent=self._checks.check_sent,
            committed=self._checks.check_committed,
        )
        store.create_workspace({"id": WORKSPACE, "label": "Bench"})
        self._configuration = _configuration(plan.lease_seconds, plan.ship_seconds, plan.keep)
        removes = Script(deletes="remove" if plan.removes else "keep", batch_rows=2)
        self.plain = self._source(0, removes)
        self.guarded = self._source(1, Script(deletes="remove", batch_rows=2))
        self.archive = self._source(2, Script(batch_rows=2))
        self.pushed = self._source(3, Script(), Sender(on_confirmed=self._check_confirmed))
        self.sources = [self.plain, self.guarded, self.archive, self.pushed]
        self._checks.watch(self.service, self.sources, guarded=self.guarded)
        self._source_actions: dict[HostKind, Callable[[], None]] = {
            "change": self._change,
            "file": self._write_file,
            "message": self._send_messages,
            "break": self._break,
            "cut": self._cut,
            "approve": self._approve,
            "promote": self._promote,
            "lose shipment": self._lose_shipment,
        }
        self._host_actions: dict[HostKind, Callable[[Host, HostProcess, float], None]] = {
            "kill": self._kill_for,
            "lose disk": self._lose_disk,
            "freeze": self._freeze_soon,
            "stop": lambda _host, process, _seconds: process.stop(),
            "cut off": self._cut_off,
            "step down": lambda _host, process, _seconds: self._ask(process, ControlStandby(action="step_down")),
        }

    def _source(self, number: int, script: Script, sender: Sender | None = None) -> SharedSource:
        sink = SinkAddress(workspace=WORKSPACE, by="label", name=f"Sink {number}")
        return SharedSource(name=f"p{number}", sink=sink, script=script, sender=sender)

    # ------------------------------------------------------------------------------------------------ the run

    def run(self) -> None:
        """Execute the plan, then verify the end.

        Raises:
            Violation: An invariant was violated.
        """
        try:
            self._perform(self._begin, self._act, self._recover, self._stay_quiet)
        finally:
            for host in self.hosts:
                self._kill(host)
                host.lose_disk()

    def _begin(self) -> None:
        """Start all hosts, the first one alone: it has the state that all others get."""
        self._change()
        first, *others = self.hosts
        self._start(first)
        if self._advance(self._now + RECOVERY_SECONDS, lambda: self._active() is not None) != "done":
            self._fail("no host becomes active")
        for host in others:
            self._start(host)

    def _act(self) -> None:
        began = self._now
        for action in self.plan.actions:
            self._advance(began + action.at)
            self._trace(f"** {action}")
            self._catch_up()
            self._do(action)
        while self._events:
            self._advance(max(at for at, _, _ in self._events))
        if self.plain.script.contents["part"].error is not None:
            self._catch_up()
            self._write(self.plain)
        self._trace("** no more faults from now on")

    def _do(self, action: HostAction) -> None:
        seconds, host = action.leases * self.plan.lease_seconds, self._host(action)
        if action.kind in self._source_actions:
            self._source_actions[action.kind]()
        elif action.kind in self._host_actions:
            if host.process is not None and not host.is_frozen:
                self._host_actions[action.kind](host, host.process, seconds)
        else:
            self._begin_fault(action, seconds)

    def _begin_fault(self, action: HostAction, seconds: float) -> None:
        """Begin a fault of the service or of the place, and have it end."""
        match action.kind:
            case "outage":
                self.service.outage = action.fault
                self._later(seconds, self._end_outage)
            case "storm":
                self.service.share, self.service.kinds = _STORM_SHARE, action.kinds
                self._later(seconds, self._end_storm)
            case "place away":
                self._place.is_away = True
                self._later(_PLACE_FACTOR * seconds, self._return_place)
            case "place slow":
                self._place.slow = _SLOW_CALLS
                self._later(_PLACE_FACTOR * seconds, self._speed_place)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self._now + seconds, self._number, call))

    def _advance(self, until: float, done: Callable[[], bool] = lambda: False) -> str:
        """Let time pass on all hosts; return "done" or "time". ``done`` is evaluated before time advances."""
        while True:
            running = [host.process for host in self.hosts if host.process is not None and not host.is_frozen]
            process = min(running, key=lambda one: one.loop.next_at, default=None)
            at = process.loop.next_at if process is not None else math.inf
            if at > self._now and done():
                return "done"
            due = self._events[0][0] if self._events else math.inf
            if min(at, due) > until:
                self._now = max(self._now, until)
                return "time"
            if due <= at or process is None:
                self._now = max(self._now, due)
                self._catch_up()
                heapq.heappop(self._events)[2]()
            else:
                self._step(process)
            if self._violation:
                self._fail(self._violation)

    def _step(self, process: HostProcess) -> None:
        process.loop.step()
        self._now = max(self._now, process.loop.time())
        if process.loop.failures:
            self._fail(f"{process.host.name}: " + "; ".join(process.loop.failures))
        if process.task.done():
            self._end(process.host, process)
        elif process in self._freezing and self._writes_in_flight(process):
            self._freeze(process)

    def _writes_in_flight(self, process: HostProcess) -> bool:
        return any(
            request.method != "GET" and not is_about_lease(request) and request.extensions["process"] is process
            for request in self.service.in_flight.values()
        )

    def _catch_up(self) -> None:
        """Set the clocks of all loops, which may be asleep, before something happens outside of them."""
        for host in self.hosts:
            if host.process is not None and not host.is_frozen:
                host.process.loop.skip_to(self._now)

    # ------------------------------------------------------------------------------------------------- hosts

    def _host(self, action: HostAction) -> Host:
        """Return the host that an action concerns: most often the active one."""
        active = self._active()
        if active is not None and action.which % 4:
            return active.host
        return self.hosts[action.which // 4 % len(self.hosts)]

    def _active(self) -> HostProcess | None:
        """Return the process that believes to be active; the one of the newest epoch."""
        active = [host.process for host in self.hosts if host.process is not None and host.process.is_active]
        return max(active, key=lambda one: one.epoch, default=None)

    def _start(self, host: Host) -> None:
        if host.process is not None:
            return
        self._trace(f"** {host.name} starts")
        host.starts += 1
        host.process = HostProcess(
            host,
            self._configuration,
            now=self._now,
            thread_seconds=self.plan.thread_seconds,
            scheduling=self._scheduling_numbers,
            jitter=self._jitter_numbers,
            service=self.service,
            place=self._place,
            make_readers=self._readers,
            emit=self._note_event,
            asked_to_end=lambda process: self._later(_DRAIN_SECONDS, lambda: self._end_overrun(process)),
        )

    def _end(self, host: Host, process: HostProcess) -> None:
        """Start a process that has ended again, as the service manager does."""
        error = process.task.exception()
        if error is not None:
            self._fail(f"{host.name} failed: " + "".join(traceback.format_exception(error)))
        process.end()
        host.process = None
        self._trace(f"** {host.name} has ended: {process.phase.standby.ends_because or process.shutdown.signal}")
        self._later(_RESTART_SECONDS, lambda: self._start(host))

    def _end_overrun(self, process: HostProcess) -> None:
        if process.host.process is process:
            self._trace(f"** {process.host.name} did not drain in time")
            self.counts["drains that overran"] += 1
            self._kill(process.host)
            self._later(_RESTART_SECONDS, lambda: self._start(process.host))

    def _kill(self, host: Host) -> None:
        process, host.process, host.is_frozen = host.process, None, False
        if process is not None:
            process.kill()
            self.service.client_died(process)

    def _kill_for(self, host: Host, _process: HostProcess, seconds: float) -> None:
        self._kill(host)
        self._later(seconds, lambda: self._start(host))

    def _lose_disk(self, host: Host, _process: HostProcess, seconds: float) -> None:
        self._kill(host)
        host.lose_disk()
        self._later(seconds, lambda: self._start(host))

    def _cut_off(self, _host: Host, process: HostProcess, seconds: float) -> None:
        """Have nothing that a process sends get a response."""
        self.service.cut_off.add(process)
        self._later(seconds, lambda: self.service.cut_off.discard(process))

    def _freeze_soon(self, _host: Host, process: HostProcess, seconds: float) -> None:
        """Freeze a process while a write is in flight, or a moment later if it sends none."""
        self._freezing[process] = seconds
        self._later(_FREEZE_SECONDS, lambda: self._freeze(process))

    def _freeze(self, process: HostProcess) -> None:
        seconds, host = self._freezing.pop(process, 0.0), process.host
        if not seconds or host.process is not process:
            return
        self._trace(f"** {host.name} is frozen for {seconds:.2f} s")
        host.is_frozen = True
        self.service.client_froze(process)

        def thaw() -> None:
            if host.process is process:
                self._trace(f"** {host.name} continues")
                host.is_frozen = False
                self._catch_up()

        self._later(seconds, thaw)

    def _promote(self) -> None:
        waiting = [host.process for host in self.hosts if host.process is not None and not host.process.is_active]
        if waiting:
            self._ask(waiting[self._operator_numbers.randrange(len(waiting))], ControlStandby(action="promote"))

    def _ask(self, process: HostProcess, request: Request) -> None:
        self._trace(f"   {process.host.name} is asked: {request}")
        command = Command(request, "waits", loop=process.loop, random_numbers=self._operator_numbers)
        process.loop.call_soon(command.connect)

    def _readers(self, process: HostProcess, mirror: SqliteMirror) -> Sequence[Reader]:
        process.is_older = process.phase.standby.restored_at is not None
        self.counts["take-overs with an older state"] += process.is_older
        if process.is_older and mirror.status.ownership(self.guarded.sink) is None:
            # No shipment has a reading of the source, so the guard has nothing to compare with.
            self._later(0.0, self._forgive)
            self.guarded.unapproved, self.guarded.may_shrink = set(), True
        return [
            Reader(
                pipeline=one.name,
                connector=self._connector(one, process),
                mapping=MAPPING,
                sink=one.sink,
                mirror=mirror.intake,
                emit=process.emit,
                guard=_GUARD if one is self.guarded else Guard(),
                clock=process.loop.time,
                now=process.now,
                on_pass=process.note_pass,
            )
            for one in self.sources
        ]

    def _connector(self, source: SharedSource, process: HostProcess) -> Connector:
        # With every other seed rescans come too late, so that a lost event becomes visible.
        rescan_seconds = 3.0 if self.plan.seed % 2 else 86_400.0
        if source.sender is not None:
            return PushedSource(
                source.sender, watchers=process.watchers, name=source.name, rescan_seconds=rescan_seconds
            )
        kind = ArchivedSource if source is self.archive else WatchedSource
        return kind(source.script, watchers=process.watchers, name=source.name, rescan_seconds=rescan_seconds)

    # ---------------------------------------------------------------------------------------------- what happens

    def _change(self) -> None:
        self._write(self.plain)
        self._write(self.guarded)

    def _lose_shipment(self) -> None:
        self.counts["lost shipments"] += self._place.lose_newest()

    def _write(self, source: SharedSource) -> None:
        """Write new content: some keys with new values, some unchanged, some gone if the source removes."""
        guarded, keeps, content = source is self.guarded, source.script.deletes == "keep", self._content(source)
        before, rows = source.rows, dict[str, str]()
        for number in range(self.plan.keys):
            draw, key = self._content_numbers.random(), f"k{number}"
            if not number or draw < 0.6 or (guarded and (key not in before or before[key] in source.unapproved)):
                rows[key] = self._new_value()
            elif key in before and (draw < 0.8 or guarded or (keeps and content.get(key) != before[key])):
                rows[key] = before[
                    key
                ]  # a source that keeps what it does not name must have been read before it does not
        source.held = source.approved = False
        source.wanted = source.wanted | rows if keeps else rows
        self._put(source, "part", rows)

    def _break(self) -> None:
        """Replace the content by one that can't be read, until the next one."""
        before = self.plain.script.contents["part"]
        broken = Content(rows=[], version=before.version + 1, fails_after=0, error=SourceBroken("It can't be read."))
        self.plain.script.contents["part"] = broken
        self._wake(self.plain)

    def _cut(self) -> None:
        """Write a content that the guard holds: one of all keys."""
        source = self.guarded
        if source.held or set(self._content(source)) != {f"k{number}" for number in range(self.plan.keys)}:
            return  # the guard has nothing to compare with
        opened = [host.process.mirror for host in self.hosts if host.process is not None]
        if any(one is not None and one.status.ownership(source.sink) is None for one in opened):
            return
        value = self._new_value()
        source.unapproved.add(value)
        source.held, source.approved = True, False
        self._put(source, "part", {"k0": value})
        self.counts["cuts"] += 1

    def _forgive(self) -> None:
        """Write whole content after one that the guard could not hold."""
        if self.guarded.held or self.guarded.approved:
            self._write(self.guarded)

    def _approve(self) -> None:
        """Have an operator approve the held run, as soon as a daemon has one."""
        source = self.guarded
        if source.held:
            source.held, source.approved, source.may_shrink = False, True, True
            source.wanted = dict(source.rows)
            source.unapproved -= set(source.wanted.values())
            self._later(0.0, self._decide)

    def _decide(self) -> None:
        source, active = self.guarded, self._active()
        if not source.approved or self._content(source) == source.wanted:
            return
        if active is not None and active.mirror is not None and not active.host.is_frozen:
            for held in active.mirror.status.held_runs():
                self.counts["approvals"] += 1
                self._ask(active, DecideRun(run=held.run, decision="approved"))
        self._later(_OPERATOR_SECONDS, self._decide)

    def _write_file(self) -> None:
        rows = {
            f"k{number}": self._new_value()
            for number in range(self.plan.keys)
            if not number or self._content_numbers.random() < 0.5
        }
        self._number += 1
        self.archive.wanted = self.archive.wanted | rows
        self._put(self.archive, f"file{self._number}", rows)

    def _send_messages(self) -> None:
        sender = self.pushed.sender
        if sender is None:
            raise AssertionError("it has a sender")
        for _ in range(self._content_numbers.randint(1, 4)):
            message = f"m{len(sender.messages)}", self._new_value()
            sender.messages.append(message)
            self.pushed.wanted |= [message]
            self._trace(f"   {self.pushed.name}: {message[0]}={message[1]}")
        self._wake(self.pushed)

    def _put(self, source: SharedSource, partition: str, rows: dict[str, str]) -> None:
        content: list[Row] = [{"k": key, "v": value} for key, value in rows.items()]
        source.rows = rows
        source.script.write(partition, content)
        self._trace(f"   {source.name}: " + " ".join(f"{key}={value}" for key, value in rows.items()))
        self._wake(source)

    def _wake(self, source: SharedSource) -> None:
        for host in self.hosts:
            if host.process is not None and (wake := host.process.watchers.get(source.name)) is not None:
                host.process.loop.call_soon(wake)

    def _end_outage(self) -> None:
        self.service.outage = None

    def _end_storm(self) -> None:
        self.service.share = 0.0

    def _return_place(self) -> None:
        self._place.is_away = False

    def _speed_place(self) -> None:
        self._place.slow = 1

    def _service_time(self) -> float:
        return EPOCH + self._now

    def _raise_writer(self, granted: Writer) -> None:
        self.counts["grants"] += 1
        self.service.inner.newest[WORKSPACE, granted.name] = granted
        self.service.release_held()

    # ------------------------------------------------------------------------------------------ what must hold

    def _check_confirmed(self, key: str, value: str) -> None:
        self.counts["confirmed messages"] += 1
        if self._content(self.pushed).get(key) != value:
            self._violate(f"message {key}={value} was confirmed, but the service does not have it")

    def _note_event(self, process: HostProcess, event: Event) -> None:
        # The duration of a read-back is measured by the real clock.
        text = type(event).__name__ if isinstance(event, SinksReadBack) else str(event)
        self.trace.append((self._now, f"{process.host.name}: {text}"))
        self.counts["deposed daemons"] += isinstance(event, LeaseLost)
        self.counts["restored shipments"] += isinstance(event, LeaseTaken) and bool(event.restored)
        if isinstance(event, PartFailed):
            self._violate(f"{event.part} failed: {event.sentence}\n{event.traceback}")

    def _content(self, source: SharedSource) -> dict[str, str | None]:
        """Return what the sink of a source holds."""
        store = self.service.inner.store
        sinks = store.by_label(source.sink.name)
        return {key: value for key, (value, _) in store.values(sinks[0]).items()} if sinks else {}

    def _recover(self) -> None:
        """Check that one daemon is active and that all sinks equal their sources in bounded time."""
        if self._advance(self._now + RECOVERY_SECONDS, self._is_at_end) != "done":
            self._fail(f"not everything is delivered {RECOVERY_SECONDS} s after the last fault: {self._differences()}")
        self.service.let_arrive(1.0)
        for source in self.sources:
            if len(self.service.inner.store.by_label(source.sink.name)) > 1:
                self._fail(f"{source.sink} was created twice")
        if not self._is_at_end():
            self._fail(f"late requests have changed something: {self._differences()}")

    def _differences(self) -> str:
        return "; ".join(
            f"{one.name} is {self._content(one)}, not {one.wanted}" for one in self.sources if not self._equals(one)
        )

    def _equals(self, source: SharedSource) -> bool:
        content = self._content(source)
        if source.held:  # nothing of it is delivered; what came before it may have been replaced before it was read
            return len(content) == self.plan.keys
        return content == source.wanted

    def _is_at_end(self) -> bool:
        active = self._active()
        return (
            active is not None
            and all(self._equals(one) for one in self.sources)
            and not self.archive.script.contents
            and self.pushed.sender is not None
            and not self.pushed.sender.unconfirmed()
            and not active.phase.standby.gate.closed
            and active.mirror is not None
            and active.mirror.status.pending() == 0
        )

    def _stay_quiet(self) -> None:
        """Check that nothing is sent if nothing changed, and that the held run stays held."""
        self._advance(self._now + _QUIET_SECONDS)
        writes = self.service.writes
        self._advance(self._now + _QUIET_SECONDS)
        if self.service.writes != writes:
            self._fail(f"nothing has changed, but {self.service.writes - writes} requests write")
        if not self._is_at_end():
            self._fail(f"something has changed without a reason: {self._differences()}")
        active = self._active()
        if self.guarded.held and active is not None and active.mirror is not None:
            self.counts["runs held at the end"] += 1
            if not active.mirror.status.held_runs():
                self._fail("the held run is not held any more")
        self.counts["late arrivals"] = self.service.late_arrivals

    # ------------------------------------------------------------------------------------------------ the trace

    def _trace(self, line: str) -> None:
        self.trace.append((self._now, line))

    def _fail(self, reason: str) -> NoReturn:
        found = [
            f"{host.name}: {'frozen' if host.is_frozen else host.process and host.process.phase.standby.role}"
            for host in self.hosts
        ]
        active = self._active()
        if active is not None and active.daemon is not None:
            found += active.daemon.description()
        again = f"make simulate HOSTS=yes SEED={self.plan.seed}"
        lines = self.lines()[-_LAST_LINES:]
        raise Violation("\n".join([str(self.plan), *lines, *found, "", reason, f"Once more: {again}"]))


class _StampedStore(RecordingStore):
    """Stamps entries by the clock of the service."""

    def __init__(self, *, written: Callable[[str, str, str | None], None], now: Callable[[], float]) -> None:
        super().__init__(mass_creates=True, written=written)
        self._time = now

    def _apply(self, change: dict[str, object]) -> None:
        records = change.get("entries", [change.get("record")])
        for record in records if isinstance(records, list) else []:
            if isinstance(record, dict):
                record["updatedAt"] = stamp(self._time())
        super()._apply(change)


@cache
def _configuration(lease_seconds: int, ship_seconds: float, keep: int) -> Configuration:
    """Return the configuration that all hosts share; each has its own state file."""
    found = configuration()
    standby = found.settings.standby.model_copy(
        update={"lease_seconds": lease_seconds, "ship_seconds": ship_seconds, "keep": keep}
    )
    pipelines = tuple(
        one.model_copy(update={"guard": _GUARD if number == 1 else Guard()})
        for number, one in enumerate(found.settings.pipelines[:4])
    )
    return replace(found, settings=found.settings.model_copy(update={"standby": standby, "pipelines": pipelines}))


def simulate_hosts(seed: int | HostPlan) -> HostWorld:
    """Run the simulation of a seed, or of a plan from a test.

    Raises:
        Violation: An invariant was violated; the message has the trace.
    """
    world = HostWorld(seed if isinstance(seed, HostPlan) else host_plan_of(seed))
    world.run()
    return world
