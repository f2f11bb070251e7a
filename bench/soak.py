"""`python -m bench soak`: run the daemon and the service under load and faults, and check for leaks of memory and descriptors.

Files are changed, replaced and added all the time, and a log grows by `ROWS_A_SECOND`. A proxy between the daemon and the service
cuts connections, delays responses, and responds with 429 and 503. At the end every sink must have exactly the last values. A line
is fitted through the samples of the second half of the time. If this line rises too much, the program leaks.

The growth of the daemon's memory is also divided by the rows of the log: a leak of a few hundred bytes a row is small
compared with the whole memory. The leak of a statement on a reading connection is measured separately, before the load.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import click

from bench.child import ChildFailed, Running, children_of
from bench.daemon import Site
from bench.endpoints import Endpoint, Wrong, workspace_service
from bench.figures import table
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.faulty_proxy import FaultyProxy

ROWS = 3
ROWS_A_SECOND = 150
LOG_KEYS = 1000
BYTES_A_ROW = 64.0
BYTES_A_STATEMENT = 8.0
STATEMENTS = 300_000
SHARE_OF_FAULTS = 0.03
SAMPLES = 120
WINDOW = 6
CHANGES_A_TURN = 20
DEADLINE_SECONDS = 300.0
_SEED = 14


@dataclass(frozen=True, slots=True)
class Measure:
    """A sampled quantity. It is flat if its rise in the second half is at most ``part`` times its median plus ``grains``."""

    unit: str
    part: float
    grains: float


MEASURES: Mapping[str, Measure] = {
    "memory": Measure("MiB", part=0.05, grains=2.0),
    "descriptors": Measure("", part=0.05, grains=3.0),
    "threads": Measure("", part=0.0, grains=2.0),
}
"""The measures by name. `Samples` has a series for each process and measure."""

CACHE_MIB: Mapping[str, float] = {"daemon": 24, "service": 64}
"""The maximum size of each program's SQLite cache (``PRAGMA cache_size``). A cache grows with its database up to this size."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The ``median`` of the second half of a series, and the ``rise`` of its lowest values over that half.

    The rise is that of the least-squares line through the lowest value of each `WINDOW` samples. The number of used connections
    varies with the load of the machine, but only a leak also raises the lowest values.
    """

    median: float
    rise: float

    def is_flat(self, measure: Measure, *, cached: float = 0.0) -> bool:
        """Return True if the rise, minus the growth of the cache (``cached``), is not above the measure's limit."""
        return self.rise - cached <= measure.part * self.median + measure.grains


def trend(times: Sequence[float], values: Sequence[float]) -> Trend:
    """Return the trend of the second half of a series. ``times``: in seconds, ascending.

    Raises:
        ValueError: There are fewer than four samples.
    """
    if len(times) < 4:
        raise ValueError(f"A trend needs at least four samples; there are {len(times)}. Run for more minutes.")
    half = len(times) // 2
    window = max(1, min(WINDOW, (len(times) - half) // 2))
    starts = range(half, len(times) - window + 1, window)
    lowest = [min(values[start : start + window]) for start in starts]
    line = statistics.linear_regression([times[start] for start in starts], lowest)
    return Trend(median=statistics.median(values[half:]), rise=line.slope * (times[-1] - times[half]))


@dataclass(slots=True)
class Samples:
    """The samples of a run. ``times``: seconds since the start; ``rows``: lines of the log at each time.

    ``series`` by process and measure; ``databases``: the size of each process's database in MiB.
    """

    times: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    series: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    databases: dict[str, list[float]] = field(default_factory=dict)

    def take(self, now: float, rows: int, processes: Mapping[str, Running], databases: Mapping[str, Path]) -> None:
        self.times.append(now)
        self.rows.append(rows)
        for name, child in processes.items():
            for measure, value in _observe(child.process.pid).items():
                self.series.setdefault((name, measure), []).append(value)
        for name, file in databases.items():
            self.databases.setdefault(name, []).append(file.stat().st_size / 2**20)

    def bytes_a_row(self) -> float:
        """Return the daemon's memory growth in the second half, in bytes for each row, without its cache and the noise."""
        memory, database = (
            trend(self.times, self.series["daemon", "memory"]),
            trend(self.times, self.databases["daemon"]),
        )
        cached = min(max(database.rise, 0.0), CACHE_MIB["daemon"])
        beyond = memory.rise - cached - MEASURES["memory"].grains
        return max(beyond, 0.0) * 2**20 / (self.rows[-1] - self.rows[len(self.rows) // 2])

    def write(self, file: Path) -> None:
        """Write all series as JSON."""
        series = {" ".join(name): values for name, values in self.series.items()}
        file.write_text(json.dumps({"seconds": self.times, "rows": self.rows, "databases": self.databases, **series}))


def _observe(pid: int) -> dict[str, float]:
    """Return the measures of a process and its descendants, added up."""
    found = dict.fromkeys(MEASURES, 0.0)
    for member in _family(pid):
        process = Path(f"/proc/{member}")
        rollup = (process / "smaps_rollup").read_text().splitlines()
        # Pages of files are not counted. They are shared, so a process's part depends on other programs with the same files.
        own = next(line for line in rollup if line.startswith("Anonymous:"))
        found["memory"] += int(own.split()[1]) / 1024
        found["descriptors"] += len(list((process / "fd").iterdir()))
        found["threads"] += len(list((process / "task").iterdir()))
    return found


def _family(pid: int) -> Iterator[int]:
    yield pid
    for child in children_of(pid):
        yield from _family(child)


class _Load:
    """The source files and the log of the pipelines. ``expected``: key to value for each sink, by the sink's label."""

    def __init__(self, drop: Path, pipelines: int, files: int) -> None:
        self.expected: dict[str, dict[str, str]] = {}
        self.changes = self.rows = 0
        self._drop = drop
        (drop / "log").mkdir(parents=True)
        self._log = drop / "log" / "rows.csv"
        self._log.write_text("part_number,mass\n")
        self.append(1)
        self._pipelines = pipelines
        self._slots = max(1, files // pipelines)
        self._files: dict[tuple[int, int], Path] = {}
        self._random = random.Random(_SEED)
        for number in range(pipelines):
            (drop / str(number)).mkdir(parents=True)
            for slot in range(self._slots):
                self._write(number, slot, self._path(number, slot))

    def change(self) -> None:
        """Change a random file: in half of the cases in place, else a file with another name replaces it."""
        number, slot = self._random.randrange(self._pipelines), self._random.randrange(self._slots)
        path = self._files[number, slot]
        if self._random.random() < 0.5:
            path.unlink(missing_ok=True)  # an archived file is gone
            path = self._path(number, slot)
        self._write(number, slot, path)

    def append(self, rows: int) -> None:
        """Append to the log until it has ``rows`` rows."""
        numbers = range(self.rows, rows)
        with self._log.open("a") as opened:
            opened.writelines(f"L{number % LOG_KEYS},{number}\n" for number in numbers)
        self.expected.setdefault(_LOG, {}).update((f"L{number % LOG_KEYS}", str(number)) for number in numbers)
        self.rows = max(rows, self.rows)

    def _path(self, number: int, slot: int) -> Path:
        return self._drop / str(number) / f"{slot:04}-{self.changes}.csv"

    def _write(self, number: int, slot: int, path: Path) -> None:
        self.changes += 1
        rows = {f"P{slot:04}{row}": f"{self.changes}.{row}" for row in range(ROWS)}
        beside = path.with_suffix(".part")
        beside.write_text("part_number,mass\n" + "".join(f"{key},{value}\n" for key, value in rows.items()))
        beside.rename(path)
        self._files[number, slot] = path
        self.expected.setdefault(_label(number), {}).update(rows)


_LOG = "Soak log"


def _label(number: int) -> str:
    return f"Soak {number}"


def _site(folder: Path, url: str, service: Endpoint, pipelines: int) -> Site:
    """Write a configuration: a folder and a sink for each pipeline, and a log. Every tenth folder archives its files."""
    entries = {"key": "{part_number}", "value": "{mass}"}
    log = {
        "name": "soak-log",
        "source": {"connector": "log", "path": "drop/log", "pattern": "rows.csv", "format": {"type": "csv"}},
        "entries": entries,
        "sink": {"workspace": service.workspace, "label": _LOG},
    }
    settings = {
        "service": {"url": url, "api_key": service.api_key, "client_id": "bench", "retry_after_at_most_seconds": 5},
        "state": "var/ingestd.db",
        "pipelines": [
            log,
            *(
                {
                    "name": f"soak-{number}",
                    "source": {
                        "connector": "directory",
                        "path": f"drop/{number}",
                        "pattern": "*.csv",
                        "settle_seconds": 0,
                        **(
                            {"after": "archive", "archive": f"done/{number}"} if number % 10 == 0 else {"after": "keep"}
                        ),
                    },
                    "entries": entries,
                    "sink": {"workspace": service.workspace, "label": _label(number)},
                }
                for number in range(pipelines)
            ),
        ],
    }
    configuration = folder / "ingestd.yaml"
    configuration.write_text(json.dumps(settings, indent=1))  # JSON is valid YAML.
    return Site(folder=folder, drop=folder / "drop", configuration=configuration)


def _difference(service: Endpoint, expected: Mapping[str, Mapping[str, str]]) -> str:
    """Return a sentence about the first sink that differs, or an empty text if none differs."""
    sinks = service.ask("GET", service.sinks, timeout=120.0)
    found = {sink["label"]: {entry["key"]: entry["value"] for entry in sink["entries"]} for sink in sinks}
    if len(found) != len(sinks):
        return "A sink was created twice."
    for label, entries in expected.items():
        held = found.get(label, {})
        wrong = sorted(key for key in entries.keys() | held.keys() if entries.get(key) != held.get(key))
        if wrong:
            key = wrong[0]
            return f"{label} differs in {len(wrong)} of {len(entries)} entries: {key} is {held.get(key)}, not {entries.get(key)}."
    return ""


def _await_equal(service: Endpoint, expected: Mapping[str, Mapping[str, str]]) -> None:
    """Wait until each sink has the expected values.

    Raises:
        Wrong: A sink still has other values after `DEADLINE_SECONDS`.
    """
    deadline = time.monotonic() + DEADLINE_SECONDS
    while difference := _difference(service, expected):
        if time.monotonic() > deadline:
            raise Wrong(difference)
        time.sleep(5.0)  # reading all sinks is expensive


def soak(folder: Path, *, minutes: float, pipelines: int, files: int, share: float) -> tuple[Samples, str]:
    """Run the load; return the samples and a line of counts. ``share``: of a processor that both programs may use together.

    Raises:
        Wrong: A sink does not get the expected values.
        ChildFailed: The daemon or the service ended.
    """
    with ExitStack() as stack:
        service = stack.enter_context(workspace_service(folder / "service"))
        proxy = stack.enter_context(FaultyProxy(service.url, share=SHARE_OF_FAULTS, seed=_SEED))
        site = _site(folder, proxy.url, service, pipelines)
        load = _Load(site.drop, pipelines, files)
        daemon = stack.enter_context(site.daemon())
        print(f"{pipelines} pipelines with {files} files; waiting for their first delivery", flush=True)
        _await_equal(service, load.expected)
        samples = _run(site, {"daemon": daemon, "service": service.child}, load, minutes * 60, share)
        _await_equal(service, load.expected)
        faults = {kind: count for kind, count in sorted(proxy.met.items()) if kind != "none"}
        return samples, f"{load.changes} files written; faults: {json.dumps(faults)}"


def _run(site: Site, processes: Mapping[str, Running], load: _Load, seconds: float, share: float) -> Samples:
    samples = Samples()
    every = seconds / SAMPLES
    databases = {"daemon": site.folder / "var/ingestd.db", "service": site.folder / "service/data/workspaced.db"}
    started = time.monotonic()
    used = _cpu_seconds(processes)
    while (now := time.monotonic() - started) < seconds:
        for name, child in processes.items():
            if child.process.poll() is not None:
                raise ChildFailed(f"the {name} ended with {child.process.returncode}")
        if now >= len(samples.times) * every:
            samples.take(now, load.rows, processes, databases)
            samples.write(site.folder / "samples.json")  # each time, so that an interrupted run keeps its figures
        load.append(int(ROWS_A_SECOND * now) + 1)
        if _cpu_seconds(processes) - used < share * now:
            for _ in range(CHANGES_A_TURN):
                load.change()
        time.sleep(min(0.5, every))
    return samples


def _cpu_seconds(processes: Mapping[str, Running]) -> float:
    return sum(child.family_cpu_seconds() for child in processes.values())


@click.command()
@click.option("--minutes", default=30.0, show_default=True, type=click.FloatRange(min=0.2), help="Time under load.")
@click.option(
    "--pipelines", default=200, show_default=True, type=click.IntRange(1), help="Pipelines, each with a sink."
)
@click.option("--files", default=10_000, show_default=True, type=click.IntRange(1), help="Files in all folders.")
@click.option(
    "--share", default=0.3, show_default=True, type=click.FloatRange(0.01), help="Processor share of both programs."
)
@click.option(
    "--folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="An empty folder; it is kept."
)
def main(minutes: float, pipelines: int, files: int, share: float, folder: Path) -> None:
    """Run the daemon and the service under load and faults. Exit code 1: a sink differs, or a measure is not flat."""
    folder.mkdir(parents=True, exist_ok=True)
    a_statement = bytes_a_statement(folder)
    print(f"A statement leaks {a_statement:.1f} bytes; at most {BYTES_A_STATEMENT:.0f} are allowed.", flush=True)
    try:
        samples, counts = soak(folder, minutes=minutes, pipelines=pipelines, files=files, share=share)
    except (Wrong, ChildFailed) as error:
        raise click.ClickException(str(error)) from error
    print(f"Every sink has the last values. {counts}; load of the machine {os.getloadavg()[0]:.1f}.")
    raise SystemExit(not (report(samples) and a_statement <= BYTES_A_STATEMENT))


def report(samples: Samples) -> bool:
    """Print the trend of each series. Return True if all measures are flat."""
    rows = []
    flat = True
    grown = {process: trend(samples.times, values) for process, values in samples.databases.items()}
    for (process, name), values in samples.series.items():
        found = trend(samples.times, values)
        measure = MEASURES[name]
        cached = min(max(grown[process].rise, 0.0), CACHE_MIB[process]) if name == "memory" else 0.0
        is_flat = found.is_flat(measure, cached=cached)
        flat &= is_flat
        verdict = "flat" if is_flat else "RISES"
        if is_flat and not found.is_flat(measure):
            verdict = "with its database"
        rows.append(
            (
                f"{process} {name} {measure.unit}".rstrip(),
                f"{values[0]:.1f}",
                f"{found.median:.1f}",
                f"{found.rise:+.2f}",
                verdict,
            )
        )
    for process, values in samples.databases.items():
        size = grown[process]
        rows.append((f"{process} database MiB", f"{values[0]:.1f}", f"{size.median:.1f}", f"{size.rise:+.2f}", ""))
    table(("", "first", "median", "rise", "in the second half"), rows)
    a_row = samples.bytes_a_row()
    print(f"The daemon keeps {a_row:.0f} bytes of each row of the log; at most {BYTES_A_ROW:.0f} are allowed.")
    return flat and a_row <= BYTES_A_ROW


def bytes_a_statement(folder: Path, *, statements: int = STATEMENTS) -> float:
    """Return the bytes by which a statement on a reading connection of a state file increases this process's memory."""
    mirror = SqliteMirror.open(folder / "statements.db")
    try:
        # The first statements fill caches. Other parts may allocate memory in one round, but a leak grows in all rounds.
        sizes = []
        for count in (1000, *[statements] * 3):
            for _ in range(count):
                mirror.status.pending()
            sizes.append(_observe(os.getpid())["memory"])
        return min(after - before for before, after in pairwise(sizes)) * 2**20 / statements
    finally:
        mirror.close()


if __name__ == "__main__":
    main()
