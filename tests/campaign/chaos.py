"""Chaos over the set-up of docs/how-to/three-machines.md: parts are killed and frozen at random while sources change."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any

import httpx
import psycopg
from ruamel.yaml import YAML

from tests.campaign.sources import Push, Rows
from tests.campaign.world import Difference, World
from tests.support.haproxy import wait_for
from tests.support.object_server import SECRET
from tests.support.push_client import TOKEN
from tests.support.three_machines import ThreeMachines

WAIT_SECONDS = 15.0
"""The longest time from a fault, or from a promotion, to the next write."""
VARIABLES = "WORKSPACED_HISTORY_CHANGES=1000\n"
_LEASE_SECONDS = 5
FAULT_SECONDS = 8.0
"""How long a fault lasts: longer than a lease."""
MACHINES = ("a", "b")


class Chaos(World):
    """Steps over two hosts of the service, a primary with its standby, HAProxy, a bucket, and a daemon with its standby."""

    def __init__(self, machines: ThreeMachines, seed: int, stack: ExitStack) -> None:
        """``machines``: those at the end of the page, with `VARIABLES`."""
        self._machines = machines
        super().__init__(machines.folder, seed, stack)

    def _prepare(self) -> str:
        self.waits: list[tuple[float, str]] = []
        """How long each next write took, and after what."""
        self._numbers = count()
        self._probed: list[str] = []
        self._absent: set[str] = set()
        """Machines that serve nothing now."""
        self._files: dict[str, bytes] = {}
        self._deleted: list[str] = []
        self._key = self._machines.key()
        with self._client() as http:
            workspace = http.post("/v1/workspace", json={"label": "Probe"}).raise_for_status().json()["id"]
            created = http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "Probe"}).raise_for_status()
            self._probe_sink = created.headers["Location"]
        return self._key

    def _client(self) -> httpx.Client:
        return self._machines.client(self._key)

    # ------------------------------------------------------------------------------------------------ steps

    def step(self) -> None:
        super().step()
        self._restart_what_ended()
        with (self._folder / "steps.log").open("a") as log:  # for those who look at a run
            print(f"{datetime.now(UTC):%H:%M:%S} {self.log[-1]}", file=log)

    def kill_host(self) -> None:
        """Kill a host of the service."""
        machine = self._rng.choice(MACHINES)
        self._machines.stop("workspaced", machine, signal.SIGKILL)
        self._say(machine)
        self._probe()
        self._maybe(self._start_services)

    def freeze_host(self) -> None:
        """Freeze a host of the service, and thaw it."""
        machine = self._rng.choice(sorted(self._machines.services) or ["a"])
        self._say(machine)
        if service := self._machines.services.get(machine):
            with self._without(machine):
                self._freeze(service.process.pid)

    def kill_active(self) -> None:
        """Kill the active daemon."""
        if machine := self._machines.active():
            self._machines.stop("ingestd", machine, signal.SIGKILL)
            self._say(machine)
        self._maybe(self._start_daemons)

    def freeze_active(self) -> None:
        """Freeze the active daemon past its lease, and thaw it."""
        if machine := self._machines.active():
            self._say(machine)
            self._freeze(self._machines.daemons[machine].process.pid)

    def kill_primary(self) -> None:
        """Kill the primary of PostgreSQL, promote its standby, and make another standby."""
        self._machines.primary.kill()
        self._machines.promote()
        self._probe()
        self._machines.start_database_standby()
        self._machines.make_synchronous()
        self._probe()

    def freeze_primary(self) -> None:
        """Freeze the primary, and thaw it."""
        with self._machines.primary.frozen():
            time.sleep(FAULT_SECONDS)  # the length of the fault
        self._probe()

    def kill_proxy(self) -> None:
        self._machines.proxy.stop(signal.SIGKILL)
        self._maybe(self._start_proxy)
        self._probe()

    def freeze_proxy(self) -> None:
        """Freeze HAProxy: its machine accepts connections, and nothing responds."""
        if self._machines.proxy.process.poll() is None:
            self._freeze(self._machines.proxy.process.pid, probe_meanwhile=False)
            self._probe()

    def refuse_bucket(self) -> None:
        """Have the bucket respond with an error, or work again."""
        self._bucket_fails = not self._bucket_fails
        self._machines.gate.before = lambda _method, _path: (500, b"") if self._bucket_fails else None
        self._say(str(self._bucket_fails))

    _bucket_fails = False

    def upload(self) -> None:
        """Upload a file, or delete one."""
        with self._client() as http, suppress(httpx.TransportError):
            if self._files and self._rng.random() < 0.3:
                file = self._rng.choice(sorted(self._files))
                content = self._files.pop(file)  # what happened to it is unknown without a response
                response = http.delete(f"/v1/cloud-storage/{file}")
                if response.is_success:
                    self._deleted.append(file)
                    self._say(f"{len(content)} bytes deleted")
                return
            content = f"file {next(self._numbers)}\n".encode() * self._rng.choice([1, 1, 100_000])
            params = {"workspaceId": self._workspace, "fileName": "a.txt"}
            response = http.post("/v1/cloud-storage", params=params, content=content)
            self._say(f"{len(content)} bytes: {response.status_code}")
            if response.is_success:
                self._files[response.json()["id"]] = content

    # ------------------------------------------------------------------------------------------------ parts

    def _freeze(self, process: int, *, probe_meanwhile: bool = True) -> None:
        os.kill(process, signal.SIGSTOP)
        try:
            began = time.monotonic()
            if probe_meanwhile:
                self._probe()
            self._wait_until(began + FAULT_SECONDS)
        finally:
            os.kill(process, signal.SIGCONT)

    def _wait_until(self, end: float) -> None:
        """Wait for the rest of a fault. Its length is no condition that could be waited for."""
        time.sleep(max(0.0, end - time.monotonic()))

    @contextmanager
    def _without(self, *machines: str) -> Iterator[None]:
        """Expect no response of machines during the block."""
        self._absent |= {*machines}
        try:
            yield
        finally:
            self._absent -= {*machines}

    def _probe(self) -> None:
        """Write an entry, again until there is a response, and note how long it took."""
        can_serve = self._machines.services.keys() - self._absent
        if not can_serve or self._machines.proxy.process.poll() is not None:
            return
        key, began = f"p{next(self._numbers)}", time.monotonic()
        with self._machines.client(self._key, seconds=3.0) as http:
            while True:
                with suppress(httpx.TransportError):
                    response = http.post(f"{self._probe_sink}/mass", json={"key": key, "value": "1"})
                    if response.status_code == 200:
                        break
                    if response.status_code < 500:
                        raise self._difference(f"a write got {response.status_code} {response.text}")
                if time.monotonic() - began > 120:
                    raise self._difference("no write for 120 s")
                time.sleep(0.05)  # the interval of a client's attempts
        self._probed.append(key)
        what = f"{self.log[-1]} (load {os.getloadavg()[0]:.1f})"
        self.waits.append((time.monotonic() - began, what))

    def _start_services(self) -> None:
        for machine in MACHINES:
            if machine not in self._machines.services:
                self._machines.start("workspaced", machine, wait=False)

    def _start_daemons(self) -> None:
        for machine in MACHINES:
            if machine not in self._machines.daemons:
                self._machines.start("ingestd", machine, wait=False)

    def _start_proxy(self) -> None:
        if self._machines.proxy.process.poll() is not None:
            self._machines.proxy.start()

    def _restart_what_ended(self) -> None:
        """Do what systemd does: start a daemon again that another daemon has replaced."""
        for machine, daemon in list(self._machines.daemons.items()):
            code = daemon.process.poll()
            if code is None:
                continue
            if code != 75:
                raise self._difference(f"the daemon of {machine} ended with {code}:\n" + "\n".join(daemon.lines[-20:]))
            self._machines.stop("ingestd", machine)
            self._machines.start("ingestd", machine, wait=False)
        for machine, service in self._machines.services.items():
            if service.process.poll() is not None:
                raise self._difference(f"the service of {machine} ended: {service.log[-2000:]}")

    def _configure(self) -> None:
        (push,) = (source for source in self._sources if isinstance(source, Push))
        for source in self._sources:
            if isinstance(source, Rows):
                source.forgets = True
        addresses = self._machines.addresses
        port = push.addresses[0].rpartition(":")[2]
        push.addresses = [f"{address}:{port}" for address in addresses.values()]
        place = {"endpoint": self._machines.gate.endpoint, "access_key": "test", "secret_key": SECRET}
        standby = {**place, "lease_seconds": _LEASE_SECONDS, "ship_seconds": 1, "keep": 10}
        for machine in self._configured:
            etc = self._machines.root(machine) / "etc" / "ingestd"
            push.settings |= {"address": f"{addresses[machine]}:{port}", "acknowledge": "delivered"}
            present = YAML(typ="safe").load(etc / "ingestd.yaml")
            self._write_configuration(
                etc,
                others=present["pipelines"],
                service={**self._way_to_service(machine), "read_timeout_seconds": 5},
                state=str(self._machines.root(machine) / "var" / "lib" / "ingestd" / "ingestd.db"),
                listen={"address": f"{addresses[machine]}:0", "token": TOKEN},
                standby=standby,
            )
            self._machines.stop("ingestd", machine)

    _configured: Sequence[str] = MACHINES
    """The machines with a configuration of the daemon."""

    def _way_to_service(self, machine: str) -> dict[str, str]:
        ca_file = self._machines.root(machine) / "etc" / "ingestd" / "ca.pem"
        return {"url": self._machines.proxy.url, "ca_file": str(ca_file)}

    def _end_faults(self) -> None:
        self._bucket_fails = False
        self._start_proxy()
        self._start_services()
        self._start_daemons()
        wait_for(self._has_active)

    def _has_active(self) -> bool:
        self._restart_what_ended()
        machine = self._machines.active()
        self._daemon = self._machines.daemons[machine] if machine else None
        return machine is not None

    def _found_difference(self) -> str:
        try:
            return super()._found_difference() if self._has_active() else "no daemon is active"
        except httpx.HTTPError as error:
            return f"{error!r}"

    def finish(self) -> None:
        self.log.append("end")
        self._compare()
        lines = [*self._wrong_history(), *self._wrong_files(), *self._wrong_probes()]
        lines += [
            f"the next write took {seconds:.1f} s after {what}"
            for seconds, what in self.waits
            if seconds > WAIT_SECONDS
        ]
        if lines:
            raise self._difference("\n".join(lines))

    def summary(self) -> str:
        """Return what was done, for people."""
        done = Counter(line.partition(":")[0] for line in self.log)
        slowest, what = max(self.waits, default=(0.0, "nothing"))
        actions = ", ".join(f"{number} {action}" for action, number in done.most_common())
        return (
            f"{actions}. {len(self._files)} files, {len(self._probed)} writes of a client; the slowest one took "
            f"{slowest:.1f} s, after {what}."
        )

    def _difference(self, text: str) -> Difference:
        return super()._difference(f"{self.summary()}\n{text}")

    def _wrong_history(self) -> list[str]:
        """Return the entries that had an older value after a newer one. Values of a source only grow."""
        values: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        changed = """SELECT label, key, old_value FROM entry_change
                     JOIN data_sink ON data_sink.number = entry_change.sink WHERE label <> 'Probe' ORDER BY entry_change.number"""
        present = (
            "SELECT label, key, value FROM data_sink_entry JOIN data_sink ON data_sink.number = data_sink_entry.sink"
        )
        with psycopg.connect(self._database()) as connection:
            for statement in (changed, present):
                for label, key, value in connection.execute(statement):
                    if value is not None:
                        values[label, key].append(int(value))
        return [
            f"{key} of {label} had {list(found)}"
            for (label, key), found in values.items()
            if any(later <= earlier for earlier, later in pairwise(found))
        ]

    def _wrong_files(self) -> list[str]:
        """Return acknowledged files with other bytes, deleted ones that are there, and objects that no record knows."""
        lines = []
        with self._client() as http:
            for file, content in self._files.items():
                if http.get(f"/v1/cloud-storage/download/{file}").content != content:
                    lines.append(f"the file {file} has other bytes")
            lines += [
                f"the deleted file {file} is there"
                for file in self._deleted
                if http.get(f"/v1/cloud-storage/download/{file}").is_success
            ]
        with psycopg.connect(self._database()) as connection:
            known = {
                name for (name,) in connection.execute("SELECT name FROM blob UNION ALL SELECT name FROM dropped_blob")
            }
        objects = [path.removeprefix("workspaced/") for path in self._machines.bucket.paths("workspaced")]
        left = [name for name in objects if name != "identity" and name.rpartition("/")[0] not in known]
        return lines + [f"the object {name} belongs to nothing" for name in left]

    def _wrong_probes(self) -> list[str]:
        with self._client() as http:
            stored = {entry["key"] for entry in http.get(self._probe_sink).raise_for_status().json()["entries"]}
        return [f"the acknowledged write of {key} is lost" for key in self._probed if key not in stored]

    def _database(self) -> str:
        return self._machines.primary.url.replace("/postgres", "/workspaced")


Chaos.actions = {
    "change": (60, World.change),
    "wait": (10, World.wait),
    "upload": (10, Chaos.upload),
    "kill host": (4, Chaos.kill_host),
    "freeze host": (2, Chaos.freeze_host),
    "kill active daemon": (4, Chaos.kill_active),
    "freeze active daemon": (3, Chaos.freeze_active),
    "kill primary": (2, Chaos.kill_primary),
    "freeze primary": (1, Chaos.freeze_primary),
    "kill proxy": (2, Chaos.kill_proxy),
    "freeze proxy": (1, Chaos.freeze_proxy),
    "refuse bucket": (3, Chaos.refuse_bucket),
    "checkpoint": (3, World.checkpoint),
}
