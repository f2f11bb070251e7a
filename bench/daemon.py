"""The measured daemon: its folder with the configuration, its commands, and a process that makes repeated passes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.child import HANGING_SECONDS, Cost, Running, python, run, running
from bench.endpoints import Endpoint
from bench.flame import recorded
from bench.sample import KEY, VALUE

LABEL = "Parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A configured daemon. ``drop`` is the folder that the daemon reads."""

    folder: Path
    drop: Path
    configuration: Path

    def sync(self) -> Cost:
        """Run `ingestd sync` once, from exec to its end."""
        return run(python("ingestd", "sync", "-c", str(self.configuration)))

    def status(self) -> dict[str, Any]:
        """Return what `ingestd status --json` prints."""
        found: dict[str, Any] = json.loads(
            run(python("ingestd", "status", "--json", "-c", str(self.configuration))).output
        )
        return found

    @contextlib.contextmanager
    def daemon(self) -> Iterator[Running]:
        """Run `ingestd run` and wait until it is ready."""
        log = self.folder / "daemon.log"
        command = ["sh", "-c", 'exec "$@" 2>&1', "sh", *python("ingestd", "run", "-c", str(self.configuration))]
        with running(command, log=log) as child:
            child.line(lambda line: '"daemon_ready"' in line)
            with recorded(child.process.pid, "ingestd run"):
                yield child

    @contextlib.contextmanager
    def warm(self) -> Iterator[Warm]:
        """Run a process of `bench.passes`, which has imported all modules and makes a pass on request."""
        with running(python("bench.passes", str(self.configuration)), log=self.folder / "warm.log") as child:
            child.line(lambda line: line == "ready")
            with recorded(child.process.pid, "warm passes"):
                yield Warm(child)


@dataclass(frozen=True, slots=True)
class Warm:
    """The process of `bench.passes`."""

    child: Running

    def sync(self) -> dict[str, Any]:
        """Make a pass. Return ``seconds``, ``cpu_seconds``, ``delivered`` and ``exit_code``."""
        self.child.send("pass")
        response: dict[str, Any] = json.loads(
            self.child.line(lambda line: line.startswith("{"), within=HANGING_SECONDS)
        )
        return response


def site(
    folder: Path,
    endpoint: Endpoint,
    *,
    key: str = KEY,
    value: str = VALUE,
    after: str = "keep",
    label: str = LABEL,
    source: Mapping[str, Any] | None = None,
    schedule: Mapping[str, Any] | None = None,
) -> Site:
    """Write a configuration with one pipeline. Without ``source``, it reads a new folder ``drop`` with ``settle_seconds`` 0."""
    drop = folder / "drop"
    drop.mkdir(parents=True)
    schedule = {"schedule": {"every": "1h"}} if schedule is None and source is not None else dict(schedule or {})
    source = source or {"connector": "directory", "path": "drop", "settle_seconds": 0, "after": after}
    settings = {
        "service": {"url": endpoint.url, "api_key": endpoint.api_key, "client_id": "bench"},
        "state": "var/ingestd.db",
        "pipelines": [
            {
                "name": "parts",
                "source": {**source, **({"archive": "done"} if after == "archive" else {})},
                "entries": {"key": key, "value": value, "type": "scalar"},
                "sink": {"workspace": endpoint.workspace, "label": label},
                **schedule,
            }
        ],
    }
    configuration = folder / "ingestd.yaml"
    configuration.write_text(json.dumps(settings, indent=1))  # JSON is valid YAML.
    return Site(folder=folder, drop=drop, configuration=configuration)
