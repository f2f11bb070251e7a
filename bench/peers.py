"""A file read for the first time, untouched, written again, and with ten changed rows, by ingestd, dlt and the Singer SDK.

Whole commands are measured, from exec to the end, because a scheduler starts these products as commands. INGESTD_BENCH_PEERS
names the interpreter of an environment with ``dlt``, ``pandas``, ``singer-sdk`` and ``requests``. This benchmark never installs
these packages.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import sample
from bench.child import Cost, run
from bench.daemon import site
from bench.endpoints import Counting, check_counted, counting_server
from bench.figures import Report, Rounds, seconds, thousands, whole
from bench.rounds import Options, surroundings_note
from bench.ten import CHANGED
from bench.unchanged import NAME, replace

VARIABLE = "INGESTD_BENCH_PEERS"
OURS = "ingestd sync"
DLT = "dlt: filesystem, read_csv, destination"
SINGER = "Singer SDK: tap | target"
FIRST, UNTOUCHED, WRITTEN, TEN = "first", "untouched", "written again", "ten changed"
PASSES = (FIRST, UNTOUCHED, WRITTEN, TEN)

_PART = 5
"""All programs get the requested rows divided by this number, because the peers are slow."""
_SEED = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """A measured product. ``drop``: the folder that ``command`` reads."""

    name: str
    drop: Path
    command: Callable[[], Cost]


def measure(options: Options) -> Report:
    figures = Rounds()
    rows = options.rows // _PART
    csv, changed = options.folder / "parts.csv", options.folder / "changed.csv"
    sample.write_csv(csv, rows)
    numbers = random.Random(_SEED).sample(range(rows), CHANGED)
    sample.write_csv(changed, rows, revised=dict.fromkeys(numbers, "revised, by hand"))
    lacking = _missing()
    with counting_server(options.folder) as counting:
        for folder in options.rounds(figures):
            for product in _products(folder, counting, lacking):
                _passes(figures, product, counting, rows, {FIRST: csv, WRITTEN: csv, TEN: changed})
    return _report(options, figures, rows, lacking)


def _missing() -> str:
    """Return why the peers cannot be measured; empty if they can."""
    interpreter = os.environ.get(VARIABLE)
    if not interpreter:
        return f"dlt and Singer: not measured, because {VARIABLE} names no interpreter that has them"
    program = "import dlt, pandas, requests, singer_sdk"
    found = subprocess.run([interpreter, "-c", program], capture_output=True, text=True, check=False)
    lines = found.stderr.strip().splitlines() or [""]
    return "" if found.returncode == 0 else f"dlt and Singer: not measured, because {interpreter} said {lines[-1]}"


def _products(folder: Path, counting: Counting, lacking: str) -> Sequence[_Product]:
    ours = site(folder / "ours", counting)
    products = [_Product(name=OURS, drop=ours.drop, command=ours.sync)]
    if lacking:
        return products
    interpreter = os.environ[VARIABLE]
    dlt, singer = folder / "dlt" / "drop", folder / "singer" / "drop"
    for drop in (dlt, singer):
        drop.mkdir(parents=True)
    dlt_command = [interpreter, "-m", "bench.peer_programs.dlt_csv", str(dlt), counting.url, str(dlt.parent / "state")]
    tap, target = (shlex.join([interpreter, "-m", f"bench.peer_programs.singer_{part}"]) for part in ("tap", "target"))
    return [
        *products,
        _Product(name=DLT, drop=dlt, command=lambda: run(dlt_command)),
        _Product(
            name=SINGER,
            drop=singer,
            command=lambda: run(
                ["bash", "-o", "pipefail", "-c", f"{tap} | {target}"], TAP_FOLDER=str(singer), TARGET_URL=counting.url
            ),
        ),
    ]


def _passes(figures: Rounds, product: _Product, counting: Counting, rows: int, contents: dict[str, Path]) -> None:
    counting.start_anew()
    for name in PASSES:
        if name in contents:
            replace(product.drop / NAME, contents[name])
        before = counting.tally().entries
        cost = product.command()
        tally = counting.tally()
        if name == FIRST:
            check_counted(tally, rows, sample.wrong_values(tally.sampled, rows))
            figures.add(f"{product.name} cpu", cost.cpu_seconds)
            figures.add(f"{product.name} rate", rows / cost.seconds)
        figures.add(f"{product.name} {name}", cost.seconds)
        figures.add(f"{product.name} {name} entries", tally.entries - before)


def _report(options: Options, figures: Rounds, rows: int, lacking: str) -> Report:
    names = [name for name in (OURS, DLT, SINGER) if figures.count(f"{name} rate")]
    lines = [
        (
            name,
            figures.spread(f"{name} rate", thousands),
            figures.spread(f"{name} cpu", seconds),
            *(
                cell
                for one in PASSES[1:]
                for cell in (
                    figures.spread(f"{name} {one}", seconds),
                    figures.spread(f"{name} {one} entries", whole),
                )
            ),
        )
        for name in names
    ]
    around = options.surroundings(figures)
    return Report(
        name="peers",
        title=f"peers: {rows} rows for the first time and again",
        header=("", "1000 entries/s", "CPU seconds", *(cell for one in PASSES[1:] for cell in (one, "entries"))),
        lines=lines,
        ratios=[
            pair
            for name, short in ((DLT, "dlt"), (SINGER, "Singer"))
            for pair in (
                (f"first: rate over {short}", figures.ratio(f"{OURS} rate", f"{name} rate"), "1 or more"),
                *(
                    (f"{one}: command over {short}", figures.ratio(f"{OURS} {one}", f"{name} {one}"), "1 or less")
                    for one in PASSES[1:]
                ),
            )
        ],
        notes=[
            surroundings_note(around),
            "Seconds of whole commands, and sent entries. dlt stores the time of the newest file; the Singer tap stores nothing.",
            *([lacking + "."] if lacking else []),
        ],
        summary=around
        | {
            "rows": rows,
            "entries_per_second": {name: round(figures.median(f"{name} rate")) for name in names},
            "seconds": {name: {one: round(figures.median(f"{name} {one}"), 3) for one in PASSES} for name in names},
            "entries": {name: {one: int(figures.median(f"{name} {one} entries")) for one in PASSES} for name in names},
        },
    )
