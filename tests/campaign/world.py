"""A campaign: the daemon and the service as processes, many pipelines, random steps, and exact comparisons."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import httpx

from tests.campaign.model import Entries, SinkModel
from tests.campaign.sources import make_sources
from tests.support.daemon_process import Daemon, environment, ingestd
from tests.support.faulty_proxy import ALL_KINDS, FaultyProxy
from tests.support.push_client import TOKEN, free_address
from tests.support.small_disk import small_disk
from tests.support.workspaced_process import WorkspaceService, new_key

_DEADLINE_SECONDS = 180.0
_DRIFT_CODES = (0, 6)
"""6: a sink differs."""


class Difference(Exception):
    """A sink has other entries than the sources explain. The text has all steps."""


class World:
    """Runs the steps of one seed; ``stack`` ends its processes. ``log`` has the steps so far."""

    actions: ClassVar[dict[str, tuple[int, Callable[[Any], None]]]]
    """The weight and the method of each step."""

    def __init__(self, folder: Path, seed: int, stack: ExitStack) -> None:
        self._folder, self._seed = folder, seed
        self._rng = random.Random(seed)
        self.log: list[str] = ["start"]
        self._daemon: Daemon | None = None
        self._stack = stack
        self._key = self._prepare()
        with self._client() as client:
            created = client.post("/v1/workspace", json={"label": "Bench"}).raise_for_status().json()
        self._workspace = str(created["id"])
        self._sinks = f"/v1/workspace/{self._workspace}/data-sink"
        self._sources = make_sources(folder, free_address())
        self._labels = list(dict.fromkeys(source.label for source in self._sources))
        self._models = {
            label: SinkModel([source for source in self._sources if source.label == label]) for label in self._labels
        }
        self._names = {source.name: source.name for source in self._sources}
        self._lost: set[str] = set()
        self._restored = False
        self._backup: dict[str, dict[str, Entries]] = {}
        self._configure()
        self._compare()

    def _prepare(self) -> str:
        """Start the service and what is before it, and return a key."""
        self._service: WorkspaceService | None = None
        self._disk = self._stack.enter_context(small_disk(self._folder / "state", megabytes=48))
        self._full = False
        key = new_key(self._folder / "service")
        self._stack.callback(self._close)
        self._service = WorkspaceService(self._folder / "service")
        self._proxy = self._stack.enter_context(
            FaultyProxy(self._service.url, share=0.0, seed=self._seed, kinds=ALL_KINDS)
        )
        return key

    def run(self, steps: int) -> None:
        """Perform steps, and compare at the end.

        Raises:
            Difference: a sink differs.
        """
        for _ in range(steps):
            self.step()
        self.finish()

    def step(self) -> None:
        """Perform one step."""
        action = self._rng.choices(list(self.actions), weights=[weight for weight, _ in self.actions.values()])[0]
        self.log.append(action)
        self.actions[action][1](self)

    def finish(self) -> None:
        """Compare everything, and that another process finds nothing to send.

        Raises:
            Difference: a sink differs.
        """
        self.log.append("end")
        self._compare()
        self._stop_daemon(signal.SIGTERM)
        again = ingestd(self._folder, "sync", "--timeout", "60", timeout=120)
        if ", 0 pending" not in again.stdout:
            raise self._difference(f"sync after the end: {again.stdout}{again.stderr}")
        self._compare_at_once()

    def _close(self) -> None:
        if self._daemon is not None:
            self._daemon.close()
        if self._service is not None:
            self._service.__exit__(None, None, None)

    def _client(self) -> httpx.Client:
        assert self._service is not None
        return self._service.client(self._key)

    # ------------------------------------------------------------------------------------------------ steps

    def change(self) -> None:
        """Change a source."""
        self._say(self._rng.choice(self._sources).change(self._rng))

    def wait(self) -> None:
        """Let the programs run."""
        time.sleep(self._rng.uniform(0.0, 0.5))  # the moment of the next step; no condition is waited for

    def kill_daemon(self) -> None:
        self._stop_daemon(signal.SIGKILL)
        self._maybe(self._start_daemon)

    def stop_daemon(self) -> None:
        self._stop_daemon(signal.SIGTERM)
        self._maybe(self._start_daemon)

    def kill_service(self) -> None:
        self._stop_service(signal.SIGKILL)
        self._maybe(self._start_service)

    def stop_service(self) -> None:
        self._stop_service(signal.SIGTERM)
        self._maybe(self._start_service)

    def wire_faults(self) -> None:
        """Inject faults into a part of the requests, or into none."""
        self._proxy.share = self._rng.choice([0.0, 0.01, 0.03, 0.06])
        self._say(str(self._proxy.share))

    def refuse(self) -> None:
        """Refuse connections, or accept them again."""
        self._proxy.accepts = not self._proxy.accepts
        self._say(str(not self._proxy.accepts))

    def fill_disk(self) -> None:
        """Leave the state file no space, or free it."""
        if self._full:
            self._free_disk()
        elif self._daemon is not None:
            self._disk.fill(self._daemon.process.pid)
            self._full = True
        self._say(str(self._full))

    def rename(self) -> None:
        """Give pipelines other names, and exchange the files of two of them, by a reload."""
        for source in self._rng.sample(self._sources, 3):
            self._names[source.name] = f"{source.name}-{len(self.log)}"
        if self._rng.random() < 0.3:
            one, two = self._sources[:2]
            self._names[one.name], self._names[two.name] = self._names[two.name], self._names[one.name]
        self._say(str(self._names))
        self._configure()
        self._reload()

    def delete_sink(self) -> None:
        """Delete a sink in the service, as a person does."""
        if self._service is None:
            return
        label = self._rng.choice(self._labels)
        with self._service.client(self._key) as client:
            for sink in client.get(self._sinks).raise_for_status().json():
                if sink["label"] == label:
                    client.delete(f"{self._sinks}/{sink['id']}").raise_for_status()
        self._lost.add(label)
        self._say(label)

    def backup(self) -> None:
        """Copy the state file."""
        self._compare()
        self._run("backup", str(self._fresh_file()))
        self._backup = {label: model.snapshot() for label, model in self._models.items()}

    def restore(self) -> None:
        """Restore the state file of the last backup."""
        if not self._backup:
            return
        self._compare()
        self._stop_daemon(signal.SIGTERM)
        self._run("restore", str(self._folder / "backup.db"))
        for old in (self._folder / "state").glob("*.replaced-*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        for label, model in self._models.items():
            model.known = {name: dict(entries) for name, entries in self._backup[label].items()}
        self._restored = True
        # Whether the restored file learns of a row before it is removed would depend on time.
        self._compare()

    def repair(self) -> None:
        """Send again what the state file knows."""
        self._compare()
        self._run("drift", "--repair", codes=_DRIFT_CODES)
        for model in self._models.values():
            model.repair()
        self._compare()

    def checkpoint(self) -> None:
        self._compare()

    # ----------------------------------------------------------------------------------------------- parts

    def _say(self, text: str) -> None:
        self.log[-1] += f": {text}"

    def _maybe(self, start: Callable[[], None]) -> None:
        if self._rng.random() < 0.6:
            start()
        else:
            self._say("stays away")

    def _fresh_file(self) -> Path:
        for old in self._folder.glob("backup.db*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        return self._folder / "backup.db"

    def _run(self, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        ended = ingestd(self._folder, *words, timeout=120)
        if ended.returncode not in codes:
            raise self._difference(f"ingestd {words} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")

    def _configure(self) -> None:
        service = {"url": self._proxy.url, "read_timeout_seconds": 2, "retry_after_at_most_seconds": 1}
        state = str(self._folder / "state" / "ingestd.db")
        self._write_configuration(self._folder, service=service, state=state)

    def _write_configuration(
        self, folder: Path, service: dict[str, Any], others: Sequence[Any] = (), **more: Any
    ) -> None:
        """Write the configuration of a daemon.

        ``service`` and ``more`` are what differs between set-ups; ``others``: further pipelines.
        """
        own = [
            {"name": self._names[source.name], "sink": {"workspace": "Bench", "label": source.label}}
            | source.pipeline()
            for source in self._sources
        ]
        service = {"api_key": self._key, "client_id": "campaign", **service}
        listen = {"address": "127.0.0.1:0"}
        settings = {"service": service, "listen": listen, "pipelines": [*others, *own], **more}
        beside = folder / "ingestd.new"
        beside.write_text(json.dumps(settings))  # JSON is YAML
        beside.rename(folder / "ingestd.yaml")

    def _start_daemon(self) -> None:
        if self._daemon is None:
            command = ["ingestd", "run", "--log-level", "debug"]
            self._daemon = Daemon(command, env=environment(self._folder), cwd=self._folder)

    def _stop_daemon(self, number: int) -> None:
        if self._daemon is None:
            return
        if self._daemon.process.poll() is not None:
            raise self._difference("the daemon ended by itself")
        self._daemon.stop(number, seconds=60)
        self._daemon.close()
        self._daemon = None

    def _reload(self) -> None:
        # A daemon that has not installed its handlers yet reads the new configuration anyway, or would end by the signal.
        if self._daemon is not None and any(event.get("event") == "daemon_ready" for event in self._daemon.events):
            self._daemon.process.send_signal(signal.SIGHUP)

    def _start_service(self) -> None:
        if self._service is None:
            self._service = WorkspaceService(self._folder / "service")
            self._proxy.target = self._service.url

    def _stop_service(self, number: int) -> None:
        if self._service is not None:
            self._service.stop(number)
            self._service.__exit__(None, None, None)
            self._service = None

    def _free_disk(self) -> None:
        if self._full and self._daemon is not None:
            self._disk.free(self._daemon.process.pid)
        elif self._full:
            (self._folder / "state" / "ballast").unlink(missing_ok=True)
        self._full = False

    # ------------------------------------------------------------------------------------------ comparison

    def _compare(self) -> None:
        """End all faults, wait until everything is delivered, and compare.

        Raises:
            Difference: a sink differs.
        """
        self._end_faults()
        assert self._daemon is not None
        checked = self._restored or bool(self._lost)
        for label, model in self._models.items():
            model.update(lost=label in self._lost, checked=checked)
        deadline = time.monotonic() + _DEADLINE_SECONDS
        checks = [10.0, 5.0, 1.0] if checked else []
        while difference := self._found_difference():
            left = deadline - time.monotonic()
            if left < 0:
                raise self._difference(difference)
            if checks and left < _DEADLINE_SECONDS - checks[-1]:
                checks.pop()
                self._run("drift", codes=_DRIFT_CODES)
            self._daemon.wait_for_line(seconds=0.5)
        self._lost.clear()
        for source in self._sources:
            source.checkpoint()
        self._say("equal")

    def _end_faults(self) -> None:
        """Start what was stopped, and end all faults."""
        self._proxy.share, self._proxy.accepts = 0.0, True
        self._free_disk()
        self._start_service()
        self._start_daemon()
        assert self._daemon is not None
        self._daemon.wait_for("daemon_ready")
        self._reload()
        self._proxy.wait_until_idle()

    def _found_difference(self) -> str:
        """Return what is not read, delivered or equal yet; empty if everything is."""
        waiting = [source.name for source in self._sources if not source.is_read()]
        if waiting:
            return f"{waiting} are not read"
        return self._unequal() or self._pending()

    def _pending(self) -> str:
        assert self._daemon is not None
        self._daemon.wait_for("listener_opened")
        address = [event["address"] for event in self._daemon.events if event.get("event") == "listener_opened"][-1]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        lines = httpx.get(f"{address}/metrics", headers=headers, timeout=30.0).raise_for_status().text.splitlines()
        return "\n".join(
            line for line in lines if line.startswith("ingestd_pending_entries{") and float(line.split()[-1])
        )

    def _unequal(self) -> str:
        with self._client() as client:
            sinks = client.get(self._sinks).raise_for_status().json()
        if len({sink["label"] for sink in sinks}) != len(sinks):
            return "a sink was created twice"
        held = {sink["label"]: {entry["key"]: entry["value"] for entry in sink["entries"]} for sink in sinks}
        lines = []
        for label, model in self._models.items():
            found = held.get(label, {})
            keys = [key for key in found.keys() | model.held.keys() if found.get(key) != model.held.get(key)]
            lines += [f"{key} is {found.get(key)}, not {model.held.get(key)}" for key in sorted(keys)]
        return "\n".join(lines)

    def _compare_at_once(self) -> None:
        if difference := self._unequal():
            raise self._difference(difference)

    def _difference(self, text: str) -> Difference:
        lines = [] if self._daemon is None else self._daemon.lines
        (self._folder / "daemon.log").write_text("\n".join(lines))
        steps = "\n".join(f"{number:4} {line}" for number, line in enumerate(self.log))
        return Difference(f"seed {self._seed} after {len(self.log)} steps:\n{steps}\n{text}\nSee {self._folder}.")


World.actions = {
    "change": (60, World.change),
    "wait": (14, World.wait),
    "kill daemon": (4, World.kill_daemon),
    "stop daemon": (2, World.stop_daemon),
    "kill service": (3, World.kill_service),
    "stop service": (1, World.stop_service),
    "wire faults": (6, World.wire_faults),
    "refuse": (2, World.refuse),
    "fill disk": (2, World.fill_disk),
    "rename": (2, World.rename),
    "delete sink": (1, World.delete_sink),
    "backup": (1, World.backup),
    "restore": (1, World.restore),
    "repair": (1, World.repair),
    "checkpoint": (2, World.checkpoint),
}


def run_campaign(folder: Path, seed: int, steps: int) -> list[str]:
    """Run one seed in an empty folder, and return its steps.

    Raises:
        Difference: a sink differs.
    """
    with ExitStack() as stack:
        world = World(folder, seed, stack)
        world.run(steps)
    return world.log
