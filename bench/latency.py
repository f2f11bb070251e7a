"""The time from renaming a file into the folder until its last entry is readable, with ``settle_seconds`` 0.

The daemon and the service are running, and the sink exists. The entry is polled in a tight loop on one bare connection. So a
figure is too high by half a request on average, and the polling slows both processes.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from urllib.parse import quote

from bench.child import ChildFailed
from bench.daemon import LABEL, Site, site
from bench.endpoints import Endpoint, workspace_service
from bench.figures import Report, Rounds, milliseconds, percentile
from bench.limits.bare_http import BareConnection
from bench.limits.inotify import notice_seconds
from bench.rounds import Options, surroundings_note

FILES = 500
LINES = 10
WARM_UP = 5
KEPT = "drop to visible, file kept"
ARCHIVED = "drop to visible, file archived"
NOTICE = "inotify alone: rename to event"
WRITE = "bare client: one entry written"
READ = "bare client: one entry read"

_SEED = 500
_GAP_SECONDS = (0.005, 0.025)
_DEADLINE_SECONDS = 20.0


def measure(options: Options) -> Report:
    figures = Rounds()
    for folder in options.rounds(figures):
        _add(figures, NOTICE, notice_seconds(_files(folder / "staged", "n"), _made(folder / "noticed")))
        for name, after in ((KEPT, "keep"), (ARCHIVED, "archive")):
            with workspace_service(folder / after) as service:
                made = site(folder / f"site-{after}", service, key="{name}", value="{value}", after=after, label=LABEL)
                with made.daemon():
                    _add(figures, name, _visible(made, service))
                if after == "keep":
                    _bare(figures, service)
    return _report(options, figures)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _files(folder: Path, letter: str) -> list[Path]:
    """Write small CSV files, and return them. The keys of a file are its stem and the number of the line."""
    folder.mkdir()
    files = []
    for number in range(FILES + WARM_UP):
        file = folder / f"{letter}{number:04}.csv"
        file.write_text("name,value\n" + "".join(f"{file.stem}-{line},{line}.5 kg\n" for line in range(LINES)))
        files.append(file)
    return files


def _visible(made: Site, service: Endpoint) -> list[float]:
    rng = random.Random(_SEED)
    taken: list[float] = []
    place = ""
    with BareConnection(service.url, service.api_key) as connection:
        for file in _files(made.folder / "staged", "d"):
            # At random intervals, because a fixed interval could synchronise with another interval.
            time.sleep(rng.uniform(*_GAP_SECONDS))
            dropped = time.monotonic()
            file.rename(made.drop / file.name)
            place = place or _sink(service)
            path = f"{place}/{quote(f'{file.stem}-{LINES - 1}')}"
            while connection.request("GET", path) != 200:
                if time.monotonic() - dropped > _DEADLINE_SECONDS:
                    raise ChildFailed(f"{file.name} was not visible within {_DEADLINE_SECONDS:.0f} s")
            taken.append(time.monotonic() - dropped)
    return taken[WARM_UP:]


def _sink(service: Endpoint) -> str:
    """Wait until the daemon has created the sink, which it does for the first file; return the sink's path."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if sinks := service.ask("GET", f"{service.sinks}/list"):
            return f"{service.sinks}/{sinks[0]['id']}"
    raise ChildFailed(f"the sink was not created within {_DEADLINE_SECONDS:.0f} s")


def _bare(figures: Rounds, service: Endpoint) -> None:
    place = _sink(service)
    wrote, read = [], []
    with BareConnection(service.url, service.api_key) as connection:
        for number in range(FILES):
            body = json.dumps({"key": f"bare-{number}", "value": f"{number}.5 kg"}).encode()
            wrote.append(_request_seconds(connection, "POST", f"{place}/mass", body))
            read.append(_request_seconds(connection, "GET", f"{place}/bare-{number}", b""))
    _add(figures, WRITE, wrote)
    _add(figures, READ, read)


def _request_seconds(connection: BareConnection, method: str, path: str, body: bytes) -> float:
    started = time.monotonic()
    status = connection.request(method, path, body)
    if status != 200:
        raise ChildFailed(f"the bare client's {method} got status {status}")
    return time.monotonic() - started


def _add(figures: Rounds, name: str, taken: list[float]) -> None:
    for percent in (50, 99):
        figures.add(f"{name} p{percent}", percentile(taken, percent))
    figures.add(f"{name} worst", max(taken))


def _report(options: Options, figures: Rounds) -> Report:
    names = (KEPT, ARCHIVED, NOTICE, WRITE, READ)
    figures.values["floor"] = [
        sum(parts) for parts in zip(*(figures.values[f"{name} p50"] for name in (NOTICE, WRITE, READ)), strict=True)
    ]
    figures.values["50 ms"] = [0.05] * figures.count("floor")
    around = {**options.surroundings(figures), "rows": FILES * LINES}
    kinds = ("p50", "p99", "worst")
    return Report(
        name="latency",
        title=f"latency: {FILES} files of {LINES} lines, one after the other, settle_seconds 0",
        header=("milliseconds", *kinds),
        lines=[(name, *(figures.spread(f"{name} {kind}", milliseconds) for kind in kinds)) for name in names],
        ratios=(
            ("p50, file kept, over 50 ms", figures.ratio(f"{KEPT} p50", "50 ms"), "under 1"),
            ("p50, file archived, over 50 ms", figures.ratio(f"{ARCHIVED} p50", "50 ms"), "under 1"),
            ("p50, file kept, over inotify + write + read", figures.ratio(f"{KEPT} p50", "floor"), "under 4"),
            ("p99, file kept, over inotify + write + read", figures.ratio(f"{KEPT} p99", "floor"), "under 12"),
        ),
        notes=[
            surroundings_note(around),
            f"The first {WARM_UP} files, which find or create the sink, are not counted.",
        ],
        summary=around
        | {"milliseconds": {f"{n} {k}": round(figures.median(f"{n} {k}") * 1000, 2) for n in names for k in kinds}},
    )
