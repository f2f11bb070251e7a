"""Many small files, dropped at once: the time until all are delivered and archived with a receipt."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench import sample
from bench.child import ChildFailed, python, run
from bench.daemon import Site, site
from bench.endpoints import Counting, Wrong, check_counted, counting_server
from bench.figures import Report, Rounds, milliseconds, whole
from bench.rounds import Options, surroundings_note

FILES = 2000
ROWS = 10
DAEMON = "ingestd run, files dropped"
BARE = "bare loop"

_POLL_SECONDS = 0.02
_STALL_SECONDS = 60.0


def measure(options: Options) -> Report:
    figures = Rounds()
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            _daemon(figures, folder, counting)
            _bare(figures, folder)
    return _report(options, figures)


def _write_files(folder: Path) -> None:
    """Write the rows of one large file as `FILES` small files, each with the header."""
    folder.mkdir()
    whole_file = folder.parent / "whole.csv"
    sample.write_csv(whole_file, FILES * ROWS)
    header, *lines = whole_file.read_text().splitlines(keepends=True)
    for number in range(FILES):
        (folder / f"f{number:04}.csv").write_text(header + "".join(lines[number * ROWS : (number + 1) * ROWS]))


def _daemon(figures: Rounds, folder: Path, counting: Counting) -> None:
    staged, made = folder / "staged", site(folder / "site", counting, after="archive")
    _write_files(staged)
    counting.start_anew()
    with made.daemon() as child:
        used = child.cpu_seconds()
        started = time.monotonic()
        for file in staged.iterdir():
            file.rename(made.drop / file.name)
        _wait_until_archived(made)
        taken = time.monotonic() - started
        figures.add(DAEMON, FILES / taken)
        figures.add(f"{DAEMON} cpu", (child.cpu_seconds() - used) / FILES)
    _check(made, counting)


def _wait_until_archived(made: Site) -> None:
    waiting, moved = FILES, time.monotonic()
    while waiting:
        time.sleep(_POLL_SECONDS)
        now = sum(1 for _ in made.drop.iterdir())
        if now < waiting:
            waiting, moved = now, time.monotonic()
        elif time.monotonic() - moved > _STALL_SECONDS:
            raise ChildFailed(f"{waiting} of {FILES} files are not archived, and none was for {_STALL_SECONDS:.0f} s")


def _check(made: Site, counting: Counting) -> None:
    tally = counting.tally()
    check_counted(tally, FILES * ROWS, sample.wrong_values(tally.sampled, FILES * ROWS))
    archive = made.folder / "done"
    receipts = [json.loads(path.read_text()) for path in archive.rglob("*.receipt.json")]
    files = sum(1 for _ in archive.rglob("f*.csv"))
    if files != FILES or len(receipts) != FILES:
        raise Wrong(f"the archive has {files} files and {len(receipts)} receipts, not {FILES} of each")


def _bare(figures: Rounds, folder: Path) -> None:
    _write_files(folder / "bare")
    cost = run(python("bench.limits.bare_files", str(folder / "bare"), str(folder / "bare-done")))
    found = json.loads(cost.output)
    if found["rows"] != FILES * ROWS:
        raise Wrong(f"the bare loop read {found['rows']} rows, not {FILES * ROWS}")
    figures.add(BARE, FILES / found["seconds"])
    figures.add(f"{BARE} cpu", cost.cpu_seconds / FILES)


def _report(options: Options, figures: Rounds) -> Report:
    around = {**options.surroundings(figures), "rows": FILES * ROWS}
    return Report(
        name="files",
        title=f"files: {FILES} files of {ROWS} rows at once, each archived with a receipt",
        header=("", "files/s", "CPU ms a file"),
        lines=[
            (name, figures.spread(name, whole), figures.spread(f"{name} cpu", milliseconds)) for name in (DAEMON, BARE)
        ],
        ratios=[("files a second over the bare loop", figures.ratio(DAEMON, BARE), "0.33 or more")],
        notes=[surroundings_note(around), "The bare loop delivers nothing. Its CPU time includes the start of Python."],
        summary=around | {"files_per_second": {name: round(figures.median(name)) for name in (DAEMON, BARE)}},
    )
