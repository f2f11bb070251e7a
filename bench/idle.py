"""The cost of an idle daemon: every source is unchanged and every entry is delivered."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.child import Running, running
from bench.daemon import Site
from bench.endpoints import Wrong, workspace_service
from bench.figures import Report, Rounds, whole
from bench.rounds import Options, surroundings_note

PIPELINES = (1, 200)
EPOLL = "bare process in epoll"
CPU_GOAL = 0.001
MIB_GOAL = 90.0

_SECONDS = 30.0
_QUIET_SECONDS = 2.0
_DEADLINE_SECONDS = 60.0
_SLEEP = "import select; print('ready', flush=True); select.epoll().poll()"


def measure(options: Options) -> Report:
    figures = Rounds()
    with workspace_service(options.folder / "service") as service:
        for folder in options.rounds(figures):
            with _sleeper(folder) as child:
                _observe(figures, EPOLL, child)
            for count in PIPELINES:
                made = many_pipelines(folder / str(count), service.url, service.api_key, service.workspace, count)
                made.sync()
                with made.daemon() as daemon:
                    _check_delivered(made)
                    _wait_until_quiet(daemon)
                    _observe(figures, _name(count), daemon)
    return _report(options, figures)


def many_pipelines(folder: Path, url: str, api_key: str, workspace: str, count: int, *, rows: int = 5) -> Site:
    """Configure a daemon with ``count`` pipelines. Each pipeline has a sink, and a folder with a file of ``rows`` rows."""
    pipelines = []
    for number in range(count):
        drop = folder / "drop" / str(number)
        drop.mkdir(parents=True)
        lines = [f"P{number:03}{row:05},{row}.50\n" for row in range(rows)]
        (drop / "parts.csv").write_text("part_number,mass\n" + "".join(lines))
        pipelines.append(
            {
                "name": f"parts-{number}",
                "source": {"connector": "directory", "path": f"drop/{number}", "settle_seconds": 0},
                "entries": {"key": "{part_number}", "value": "{mass}"},
                "sink": {"workspace": workspace, "label": f"{folder.parent.name} {count} {number}"},
            }
        )
    settings = {
        "service": {"url": url, "api_key": api_key, "client_id": "bench"},
        "state": "var/ingestd.db",
        "pipelines": pipelines,
    }
    configuration = folder / "ingestd.yaml"
    configuration.write_text(json.dumps(settings, indent=1))  # JSON is valid YAML.
    return Site(folder=folder, drop=folder / "drop", configuration=configuration)


@contextlib.contextmanager
def _sleeper(folder: Path) -> Iterator[Running]:
    with running([sys.executable, "-c", _SLEEP], log=folder / "sleeper.log") as child:
        child.line(lambda line: line == "ready")
        yield child


def _check_delivered(made: Site) -> None:
    found = made.status()
    if found["pending"] or found["rejected"]:
        raise Wrong(f"a daemon with {found['pending']} pending and {found['rejected']} rejected entries is not at rest")


def _wait_until_quiet(daemon: Running) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    before = -1.0
    while (now := daemon.task_seconds()) - before > 0.02 and time.monotonic() < deadline:
        before = now
        time.sleep(_QUIET_SECONDS)


def _observe(figures: Rounds, name: str, child: Running) -> None:
    started, used, woken = time.monotonic(), child.task_seconds(), child.wakeups()
    time.sleep(_SECONDS)
    taken = time.monotonic() - started
    figures.add(name, (child.task_seconds() - used) / taken)
    figures.add(f"{name} wakeups", (child.wakeups() - woken) / taken)
    figures.add(f"{name} MiB", child.resident_mib())


def _name(count: int) -> str:
    return f"{count} pipeline{'s' if count > 1 else ''}"


def _report(options: Options, figures: Rounds) -> Report:
    names = [EPOLL, *(_name(count) for count in PIPELINES)]
    rounds = figures.count(EPOLL)
    figures.values |= {"goal cpu": [CPU_GOAL] * rounds, "goal MiB": [MIB_GOAL] * rounds}
    around = {**options.surroundings(figures), "rows": 5}
    many = _name(PIPELINES[-1])
    return Report(
        name="idle",
        title="idle: every source unchanged, every entry delivered",
        header=("", "share of a processor", "wake-ups/s", "resident MiB"),
        lines=[
            (
                name,
                figures.spread(name, lambda share: f"{share:.3%}"),
                figures.spread(f"{name} wakeups", lambda rate: f"{rate:.1f}"),
                figures.spread(f"{name} MiB", whole),
            )
            for name in names
        ],
        ratios=[
            (f"{many}: processor over {CPU_GOAL:.1%}", figures.ratio(many, "goal cpu"), "1 or less"),
            (f"{many}: memory over {MIB_GOAL:.0f} MiB", figures.ratio(f"{many} MiB", "goal MiB"), "1 or less"),
            (f"{many}: memory over the bare process", figures.ratio(f"{many} MiB", f"{EPOLL} MiB"), ""),
        ],
        notes=[
            surroundings_note(around),
            f"Each process is observed for {_SECONDS:.0f} s. Wake-ups: voluntary context switches of all threads.",
        ],
        summary=around
        | {"share": {name: round(figures.median(name), 6) for name in names}}
        | {"resident_mib": {name: round(figures.median(f"{name} MiB"), 1) for name in names}},
    )
