"""The first scan of a large tree, and the cost of an idle daemon."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.daemon import Site, site
from bench.endpoints import counting_server
from bench.figures import Report, Rounds, seconds
from bench.rounds import Options, surroundings_note
from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.sdk import SourceContext

T = TypeVar("T")

FILES = 100_000
FOLDERS = 100
STABLE = 500
FIRST = "considered at a start"
AGAIN = "considered again"
WALK = "bare walk: names and status"
IDLE = "idle daemon, 500 stable files"
IDLE_LARGE = "idle daemon, 100 000 files that wait"

_IDLE_SECONDS = 20.0
_QUIET_SECONDS = 2.0
_DEADLINE_SECONDS = 120.0


def measure(options: Options) -> Report:
    figures = Rounds()
    tree = options.folder / "tree"
    _fill(tree, FILES)
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            figures.add(WALK, _timed(_walk, tree))
            connector = _connector(tree)
            figures.add(FIRST, _timed(_consider, connector))
            figures.add(AGAIN, _timed(_consider, connector))
            small = site(folder / "small", counting)
            _fill(small.drop, STABLE, folders=0)
            figures.add(IDLE, _idle(small))
            large = site(folder / "large", counting)
            large.drop.rmdir()
            large.drop.symlink_to(tree)
            _wait_for_a_day(large)
            figures.add(IDLE_LARGE, _idle(large))
    return _report(options, figures)


def _fill(folder: Path, files: int, *, folders: int = FOLDERS) -> None:
    places = [folder / f"{number:02}" for number in range(folders)] or [folder]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        content = f"part_number,property,value,unit,revision\nP{number},mass,1.50,kg,A\n"
        (places[number % len(places)] / f"{number}.csv").write_text(content)


def _walk(folder: Path) -> int:
    count, below = 0, [str(folder)]
    while below:
        with os.scandir(below.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                else:
                    count += entry.stat(follow_symlinks=False).st_size > 0
    return count


def _connector(tree: Path) -> DirectoryConnector:
    options = DirectoryOptions.model_validate({"path": str(tree), "recursive": True})
    return DirectoryConnector(options, SourceContext(pipeline="bench", base=tree, now=lambda: time.time() + 10))


def _consider(connector: DirectoryConnector) -> int:
    return len(list(connector.partitions()))


def _timed(work: Callable[[T], int], on: T) -> float:
    started = time.monotonic()
    found = work(on)
    taken = time.monotonic() - started
    if found != FILES:
        raise AssertionError(f"{found} files were found, not {FILES}")
    return taken


def _wait_for_a_day(made: Site) -> None:
    settings = json.loads(made.configuration.read_text())
    settings["pipelines"][0]["source"] |= {"recursive": True, "settle_seconds": 86_400}
    made.configuration.write_text(json.dumps(settings))


def _idle(made: Site) -> float:
    """Return the share of a processor that the daemon uses while it has nothing to do."""
    with made.daemon() as daemon:
        began = time.monotonic()
        before = -1.0
        while (now := daemon.cpu_seconds()) - before > 0.02 and time.monotonic() - began < _DEADLINE_SECONDS:
            before = now
            time.sleep(_QUIET_SECONDS)
        started, used = time.monotonic(), daemon.cpu_seconds()
        time.sleep(_IDLE_SECONDS)
        return (daemon.cpu_seconds() - used) / (time.monotonic() - started)


def _report(options: Options, figures: Rounds) -> Report:
    figures.values["5 s"] = [5.0] * figures.count(FIRST)
    figures.values["0.5 %"] = [0.005] * figures.count(IDLE)
    around = {**options.surroundings(figures), "rows": FILES}
    return Report(
        name="folder",
        title=f"folder: {FILES:,} files in {FOLDERS} folders, and a daemon at rest".replace(",", " "),
        header=("", "seconds, or share of a processor"),
        lines=[
            *((name, figures.spread(name, seconds)) for name in (FIRST, AGAIN, WALK)),
            *((name, figures.spread(name, lambda share: f"{share:.2%}")) for name in (IDLE, IDLE_LARGE)),
        ],
        ratios=(
            (f"{FIRST}, over 5 s", figures.ratio(FIRST, "5 s"), "under 1"),
            (f"{FIRST}, over the bare walk", figures.ratio(FIRST, WALK), ""),
            (f"{IDLE}, over 0.5 %", figures.ratio(IDLE, "0.5 %"), "under 1"),
            (f"{IDLE_LARGE}, over 0.5 %", figures.ratio(IDLE_LARGE, "0.5 %"), "under 1"),
        ),
        notes=[
            surroundings_note(around),
            "A considered file is not read: the connector has its name and status, and knows whether it is ready.",
            "An idle daemon scans its folder so rarely that scans take less than a quarter of a percent of a processor.",
        ],
        summary=around | {name: round(figures.median(name), 5) for name in (FIRST, AGAIN, WALK, IDLE, IDLE_LARGE)},
    )
