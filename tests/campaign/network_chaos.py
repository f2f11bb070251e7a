"""Chaos over machines in a network of their own: cut and slow cables, full disks, wrong clocks, held requests, old shipments."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.campaign.chaos import FAULT_SECONDS, MACHINES, VARIABLES, Chaos
from tests.support.daemon_process import Daemon
from tests.support.haproxy import wait_for
from tests.support.keeping_relay import KeepingRelay
from tests.support.needed_programs import FAKE_CLOCK
from tests.support.network_hosts import network
from tests.support.small_disk import Disk, small_disk
from tests.support.three_machines import ThreeMachines, walk

_STATE_MEGABYTES = 64
_DATABASE_MEGABYTES = 400
_DATABASE_SETTINGS = ("-c max_wal_size=64MB", "-c min_wal_size=32MB")
"""Small, so that a full disk soon has no place for another segment."""
_CLOCKS = ("+3600", "-3600", "+0")
_TAKE_OVER_SECONDS = 60.0
_THIRD = "c"
"""The machine that has a daemon in one step only."""


class NetworkChaos(Chaos):
    """Steps that need hosts. ``disks``: those of the state files. The clock of machine b is wrong at times.

    Each daemon reaches the proxy by a relay, which can hold its requests.
    """

    _configured: Sequence[str] = (*MACHINES, _THIRD)

    def __init__(
        self, machines: ThreeMachines, seed: int, stack: ExitStack, gateway: str, disks: dict[str, Disk]
    ) -> None:
        """``gateway``: the address of this machine in the network of the hosts."""
        self._relays = {
            machine: stack.enter_context(KeepingRelay(machines.proxy.plain_url, gateway))
            for machine in self._configured
        }
        self._disks = disks
        self._full_disks: set[str] = set()
        machines.copy_from_a("etc/ingestd", "etc/systemd", to=_THIRD)
        super().__init__(machines, seed, stack)

    def _way_to_service(self, machine: str) -> dict[str, str]:
        return {"url": self._relays[machine].url}

    # ---------------------------------------------------------------------------------------------- cables

    def cut_machine(self) -> None:
        """Unplug a machine. If it has the primary, promote the standby, and end the former primary before it is back."""
        machine = self._rng.choice([*MACHINES, "c"])
        former = self._machines.primary if machine == self._machines.primary_machine() else None
        self._say(f"{machine}{' with the primary' if former else ''}")
        self._machines.hosts[machine].unplug()
        try:
            with self._fault(machine, *(MACHINES if machine == "c" else "")):
                if former:
                    self._machines.promote()
                    self._probe()
            if former:
                former.kill()
        finally:
            self._machines.hosts[machine].plug_in()
        if former:
            self._machines.start_database_standby()
            self._machines.make_synchronous()
        self._probe()

    def cut_link(self) -> None:
        """Cut the link between a and b; both reach the proxy and the bucket."""
        for machine in MACHINES:
            self._machines.hosts[machine].isolate(on=True)
        with self._fault(*MACHINES):
            pass
        for machine in MACHINES:
            self._machines.hosts[machine].isolate(on=False)
        self._probe()

    def slow_cables(self) -> None:
        """Make the cables of some machines slow."""
        machines = self._rng.sample([*MACHINES, "c"], self._rng.randint(1, 3))
        self._say(", ".join(f"{machine} by {self._machines.hosts[machine].slow_down()}" for machine in machines))
        with self._fault():
            self._probe()
        for machine in machines:
            self._machines.hosts[machine].speed_up()
        self._probe()

    def _change_sources(self) -> None:
        for _ in range(3):
            self._say(f"[{self._rng.choice(self._sources).change(self._rng)}]")

    @contextmanager
    def _fault(self, *absent: str) -> Iterator[None]:
        """Change sources, and let a fault last. ``absent``: machines from which no response is expected."""
        began = time.monotonic()
        self._change_sources()
        with self._without(*absent):
            yield
            self._wait_until(began + FAULT_SECONDS)

    # ----------------------------------------------------------------------------------------------- disks

    def fill_state_disk(self) -> None:
        """Leave the state file of a daemon no space, or free it."""
        machine = self._rng.choice(MACHINES)
        if machine in self._full_disks:
            self._free(machine)
        else:
            self._disks[machine].fill(0)
            self._full_disks.add(machine)
        self._say(f"{machine} {machine in self._full_disks}")

    def _free(self, machine: str) -> None:
        self._disks[machine].free(0)
        self._full_disks.discard(machine)

    def fill_database_disk(self) -> None:
        """Leave the primary or its standby no space, free it, and start the server if it has ended."""
        assert self._machines.standby
        is_primary = self._rng.random() < 0.5
        server = self._machines.primary if is_primary else self._machines.standby
        self._say("primary" if is_primary else "standby")
        assert server.disk
        server.disk.fill(0)
        with self._fault(*MACHINES):
            pass
        server.disk.free(0)
        if not server.is_running():
            self._say("it has ended")
            server.start()
        self._probe()

    # ----------------------------------------------------------------------------------- clocks and daemons

    def set_clock(self) -> None:
        """Set the clock of machine b wrong by an hour, or right, while its programs run."""
        offset = self._rng.choice(_CLOCKS)
        _clock_file(self._machines).write_text(offset)
        self._say(offset)

    def restore_older(self) -> None:
        """Change sources, kill the active daemon, and delete its newest shipments: the next one has an older state."""
        self._await_active()
        self._change_sources()
        count = self._rng.randint(1, 5)
        wait_for(lambda: len(self._after_checkpoint()) > count)
        machine = self._await_active()
        self._machines.stop("ingestd", machine, signal.SIGKILL)
        lost = self._after_checkpoint()[1:][-count:]
        for name in lost:
            self._machines.bucket.delete(name)
        self._say(f"{machine}, without {len(lost)} shipments")
        self._maybe(self._start_daemons)

    def _after_checkpoint(self) -> list[str]:
        return [name for name in self._shipments() if name > self._safe]

    def _await_active(self) -> str:
        """End all faults, and return the machine of the active daemon."""
        self._end_faults()
        machine = self._machines.active()
        assert machine
        return machine

    def wake_two(self) -> None:
        """Let two standbys wake when the lease has already ended: one takes it, the other one waits."""
        machine = self._await_active()
        self._machines.start("ingestd", _THIRD, wait=False)
        standbys = [one for name, one in self._machines.daemons.items() if name != machine]
        try:
            for one in standbys:
                one.wait_for("standby_waiting", within_seconds=_TAKE_OVER_SECONDS)
        except AssertionError:  # it ended, because its disk is full, or does not reach the service
            self._say("not waiting")
        else:
            for one in standbys:
                one.process.send_signal(signal.SIGSTOP)
            self._machines.stop("ingestd", machine, signal.SIGKILL)
            self._wait_until(time.monotonic() + FAULT_SECONDS)
            for one in standbys:
                one.process.send_signal(signal.SIGCONT)
            self._wait_until(time.monotonic() + FAULT_SECONDS)
            taken = [name for name, one in self._machines.daemons.items() if one in standbys and _has_taken(one)]
            self._say(f"{machine} was killed, then {taken} took the lease")
        self._machines.stop("ingestd", _THIRD)

    def hold_request(self) -> None:
        """Hold a write of the active daemon, freeze it past its lease, and deliver the write: the service refuses it."""
        machine = self._await_active()
        relay, daemon = self._relays[machine], self._machines.daemons[machine]
        relay.hold_writes(b"/data-sink/")
        self._say(self._rng.choice(self._sources).change(self._rng))
        if relay.holds_one(FAULT_SECONDS):
            os.kill(daemon.process.pid, signal.SIGSTOP)
            end = time.monotonic() + _TAKE_OVER_SECONDS
            try:
                while self._machines.active() == machine and time.monotonic() < end:
                    self._wait_until(time.monotonic() + 0.05)
                is_replaced = self._machines.active() != machine
                relay.pass_on()
                statuses = relay.held_statuses() if is_replaced else []
            finally:
                os.kill(daemon.process.pid, signal.SIGCONT)
            self._say(f"a write of {machine} was held, and got {statuses if is_replaced else 'no successor'}")
            if any(status < 400 for status in statuses):
                raise self._difference(f"a write of the replaced daemon got {statuses}")
        relay.pass_on()

    def _compare(self) -> None:
        """Compare, and wait for a shipment of what is equal."""
        super()._compare()
        newest = max(self._shipments(), default="")
        # One that is being made now may be older than the comparison.
        wait_for(lambda: len([name for name in self._shipments() if name > newest]) > 1)
        self._safe = max(self._shipments())

    _safe = ""
    """A shipment that has the state of the last checkpoint."""

    def _shipments(self) -> list[str]:
        """Return the names of the shipments, in the order in which they were made."""
        return self._machines.bucket.paths("ingestd/manifests")

    def _end_faults(self) -> None:
        for machine in sorted(self._full_disks):
            self._free(machine)
        super()._end_faults()


NetworkChaos.actions = {
    **Chaos.actions,
    "cut machine": (3, NetworkChaos.cut_machine),
    "cut link": (2, NetworkChaos.cut_link),
    "slow cables": (2, NetworkChaos.slow_cables),
    "fill state disk": (3, NetworkChaos.fill_state_disk),
    "fill database disk": (2, NetworkChaos.fill_database_disk),
    "set clock": (3, NetworkChaos.set_clock),
    "restore older": (3, NetworkChaos.restore_older),
    "wake two": (2, NetworkChaos.wake_two),
    "hold request": (3, NetworkChaos.hold_request),
}


def run_chaos(folder: Path, seed: int, *, minutes: float) -> Chaos:
    """Run steps of a seed for some minutes, in an empty folder.

    Raises:
        Difference: something is lost, repeated or left over, or a wait was too long.
    """
    with network() as cables, ExitStack() as stack:
        machines = ThreeMachines(folder, stack, cables, _DATABASE_SETTINGS, _DATABASE_MEGABYTES)
        _clock_file(machines).write_text("+0")
        (library,) = Path("/").glob(FAKE_CLOCK[1:])
        machines.variables["b"] = {
            "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(_clock_file(machines)),
            "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
        disks = {
            machine: stack.enter_context(
                small_disk(machines.root(machine) / "var" / "lib" / "ingestd", megabytes=_STATE_MEGABYTES)
            )
            for machine in MACHINES
        }
        for _ in walk(machines, VARIABLES):
            pass
        with ExitStack() as own:
            chaos = NetworkChaos(machines, seed, own, cables.address, disks)
            until = time.monotonic() + minutes * 60
            while time.monotonic() < until:
                chaos.step()
            chaos.finish()
    return chaos


def _has_taken(daemon: Daemon) -> bool:
    return any(event.get("event") == "lease_taken" for event in daemon.events)


def _clock_file(machines: ThreeMachines) -> Path:
    return machines.root("b") / "clock"
