"""The first delivery of a large file: entries a second and cost, compared with the limits of the machine."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from bench import sample
from bench.child import ChildFailed, Running, python, run
from bench.daemon import LABEL, site
from bench.endpoints import Counting, check_counted, check_stored, counting_server, workspace_service
from bench.figures import Report, Rounds, seconds, thousands, whole
from bench.rounds import Options, surroundings_note
from bench.syslog_ng import Form, missing, syslog_ng

SYNC = "ingestd sync -> counting server"
DAEMON = "ingestd run, file dropped -> counting server"
CSV = "syslog-ng, reliable buffer, CSV -> counting server"
NDJSON = "syslog-ng, reliable buffer, NDJSON -> counting server"
STORED = "ingestd sync -> workspaced"
BARE = "bare client -> workspaced"
POLARS = "polars reads and hashes the file"
SQLITE = "SQLite inserts the rows"

_POLL_SECONDS = 0.05
_STALL_SECONDS = 60.0


def measure(options: Options) -> Report:
    figures = Rounds()
    csv, ndjson = options.folder / "parts.csv", options.folder / "parts.ndjson"
    sample.write_csv(csv, options.rows)
    lacking = missing()
    if not lacking:
        sample.write_ndjson(ndjson, options.rows)
    load = _Load(figures=figures, rows=options.rows, csv=csv)
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            load.sync(folder / "sync", counting)
            load.daemon(folder / "run", counting)
            if not lacking:
                load.syslog_ng(CSV, folder / "csv", counting, csv)
                load.syslog_ng(NDJSON, folder / "ndjson", counting, ndjson)
            load.limits(folder)
            load.stored(folder / "stored")
            load.bare(folder / "bare")
    return _report(options, figures, lacking)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """Delivers the same rows once with each program, and records the figures."""

    figures: Rounds
    rows: int
    csv: Path

    def sync(self, folder: Path, counting: Counting) -> None:
        made = site(folder, counting)
        (made.drop / self.csv.name).hardlink_to(self.csv)
        counting.start_anew()
        cost = made.sync()
        self._check(counting)
        self._add(SYNC, seconds=cost.seconds, cpu=cost.cpu_seconds, peak=cost.peak_mib, writes=counting.tally().writes)

    def daemon(self, folder: Path, counting: Counting) -> None:
        made = site(folder, counting)
        with made.daemon() as child:
            self._dropped(DAEMON, child, counting, staged(self.csv, folder), made.drop)

    def syslog_ng(self, name: str, folder: Path, counting: Counting, file: Path) -> None:
        form: Form = "csv" if file.suffix == ".csv" else "ndjson"
        with syslog_ng(folder, counting.url, form) as (child, drop):
            self._dropped(name, child, counting, staged(file, folder), drop)

    def _dropped(self, name: str, child: Running, counting: Counting, staged: Path, drop: Path) -> None:
        """Move a file into the folder of a running process; measure until the last entry has arrived."""
        counting.start_anew()
        used = child.cpu_seconds()
        started = time.monotonic()
        staged.rename(drop / staged.name)
        arrived(name, counting, self.rows)
        cpu = child.cpu_seconds() - used
        tally = counting.tally()
        self._check(counting)
        took = (tally.last_at or started) - started
        self._add(name, seconds=took, cpu=cpu, peak=child.peak_mib(), writes=tally.writes)

    def stored(self, folder: Path) -> None:
        with workspace_service(folder) as service:
            made = site(folder / "site", service)
            (made.drop / self.csv.name).hardlink_to(self.csv)
            before = service.child.cpu_seconds()
            cost = made.sync()
            self.figures.add(f"{STORED} service cpu", service.child.cpu_seconds() - before)
            check_stored(service, LABEL, self.rows, _some(self.csv))
        self._add(STORED, seconds=cost.seconds, cpu=cost.cpu_seconds, peak=cost.peak_mib)

    def bare(self, folder: Path) -> None:
        with workspace_service(folder) as service:
            sink = service.ask("POST", service.sinks, {"label": LABEL})["id"]
            command = python("bench.limits.bare_client", str(self.csv), service.url, f"{service.sinks}/{sink}/mass")
            cost = run(command, BENCH_API_KEY=service.api_key)
            check_stored(service, LABEL, self.rows, _some(self.csv))
        self._add(BARE, seconds=json.loads(cost.output)["seconds"], cpu=cost.cpu_seconds, peak=cost.peak_mib)

    def limits(self, folder: Path) -> None:
        cost = run(python("bench.limits.polars_hash", str(self.csv), "3"))
        times = json.loads(cost.output)
        self._add(POLARS, seconds=min(times["seconds"]), cpu=min(times["cpu_seconds"]), peak=cost.peak_mib)
        cost = run(python("bench.limits.sqlite_insert", str(self.csv), str(folder / "limit.db")))
        self._add(SQLITE, seconds=json.loads(cost.output)["seconds"], cpu=cost.cpu_seconds, peak=cost.peak_mib)

    def _check(self, counting: Counting) -> None:
        tally = counting.tally()
        check_counted(tally, self.rows, sample.wrong_values(tally.sampled, self.rows))

    def _add(self, name: str, *, seconds: float, cpu: float, peak: float, writes: int | None = None) -> None:
        self.figures.add(name, self.rows / seconds)
        self.figures.add(f"{name} seconds", seconds)
        self.figures.add(f"{name} cpu", cpu)
        self.figures.add(f"{name} peak", peak)
        if writes is not None:
            self.figures.add(f"{name} writes", writes)


def staged(file: Path, folder: Path) -> Path:
    """Create a hard link to ``file`` in ``folder``, which is not watched, so that the link can be moved; return its path."""
    staged = folder / file.name
    staged.hardlink_to(file)
    return staged


def _some(csv: Path) -> dict[str, str]:
    return dict(sample.read_entries(csv).gather_every(50_021).head(50).iter_rows())


def arrived(name: str, counting: Counting, rows: int) -> None:
    """Wait until all entries have arrived. Raise `ChildFailed` if no further entry arrives for `_STALL_SECONDS`."""
    before, moved = 0, time.monotonic()
    while (distinct := counting.tally().distinct) < rows:
        if distinct > before:
            before, moved = distinct, time.monotonic()
        elif time.monotonic() - moved > _STALL_SECONDS:
            raise ChildFailed(f"{name}: {distinct} of {rows} entries arrived, and no more for {_STALL_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)


def _line(figures: Rounds, name: str) -> tuple[str, ...]:
    if not figures.count(name):
        return (name, "not measured", "-", "-", "-", "-")
    return (
        name,
        figures.spread(name, thousands),
        figures.spread(f"{name} seconds", seconds),
        figures.spread(f"{name} cpu", seconds),
        figures.spread(f"{name} peak", whole),
        figures.spread(f"{name} writes", whole),
    )


def _report(options: Options, figures: Rounds, lacking: str) -> Report:
    names = (SYNC, DAEMON, CSV, NDJSON, STORED, BARE, POLARS, SQLITE)
    lines = [_line(figures, name) for name in names]
    around = options.surroundings(figures)
    notes = [surroundings_note(around)]
    if lacking:
        notes.append(lacking + ".")
    else:
        notes.append("Start-up is counted in 'sync', and left out in 'run' and in syslog-ng's figures.")
    service = figures.spread(f"{STORED} service cpu", seconds)
    notes.append(f"CPU seconds are the sender's; workspaced used {service} for ingestd's entries.")
    return Report(
        name="cold",
        title=f"cold: {options.rows:,} rows for the first time".replace(",", " "),
        header=("", "1000 entries/s", "seconds", "CPU seconds", "peak MiB", "requests"),
        lines=lines,
        ratios=(
            ("sync (with start-up) over syslog-ng reliable, CSV", figures.ratio(SYNC, CSV), "1 or more"),
            ("sync (with start-up) over syslog-ng reliable, NDJSON", figures.ratio(SYNC, NDJSON), "1 or more"),
            ("run over syslog-ng reliable, CSV", figures.ratio(DAEMON, CSV), "4 or more"),
            ("run over syslog-ng reliable, NDJSON", figures.ratio(DAEMON, NDJSON), "1 or more"),
            ("CPU of syslog-ng reliable, CSV, over CPU of run", figures.ratio(f"{CSV} cpu", f"{DAEMON} cpu"), ""),
            ("sync over bare client, both to workspaced", figures.ratio(STORED, BARE), "0.8 or more"),
            ("sync over SQLite's insertion", figures.ratio(SYNC, SQLITE), "1 or more"),
            ("sync over polars' reading", figures.ratio(SYNC, POLARS), ""),
        ),
        notes=notes,
        summary=around
        | {
            "entries_per_second": {name: round(figures.median(name)) for name in names if figures.count(name)},
            "peak_mib": {name: round(figures.median(f"{name} peak")) for name in names if figures.count(name)},
            "cpu_seconds": {name: round(figures.median(f"{name} cpu"), 2) for name in names if figures.count(name)},
        },
    )
