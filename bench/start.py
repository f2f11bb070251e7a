"""Start-up times: short commands from exec to the end, and a daemon after SIGKILL until its first request."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Self

from bench import sample
from bench.child import Cost, Running, python, run, running
from bench.daemon import Site
from bench.endpoints import Wrong, counting_server
from bench.figures import Report, Rounds, seconds, whole
from bench.idle import many_pipelines
from bench.rounds import Options, surroundings_note
from bench.unchanged import delivered_site

ROWS = 1_000
SINKS = 20
PENDING = 100_000

HELP = "ingestd --help"
STATUS = "ingestd status, a daemon runs"
STATUS_ALONE = "ingestd status, no daemon"
SYNC = "sync, nothing changed"
POLARS = "python -c 'import polars'"
EMPTY = "python -c ''"
FIRST_REQUEST = f"run after SIGKILL until its first request, {PENDING:,} pending".replace(",", " ")

_GOAL_SECONDS = 0.5
_GOALS_OF_COMMANDS = {HELP: 0.2, STATUS: 0.3, STATUS_ALONE: 0.3}
_REPEATED = 5
"""How often a round measures each command. A command takes only a fraction of a second."""
_READING_SECONDS = 120.0
_REQUEST_SECONDS = 30.0


def measure(options: Options) -> Report:
    options = replace(options, rows=ROWS)
    figures = Rounds()
    csv = options.folder / "parts.csv"
    sample.write_csv(csv, ROWS)
    with counting_server(options.folder) as counting, _RefusingService() as service:
        made = delivered_site(options, counting, csv)
        made.sync()  # compiles the modules that an unchanged pass imports
        waiting = _site_with_pending_entries(options.folder / "waiting", service)
        for _ in options.rounds(figures):
            for _ in range(_REPEATED):
                _add(figures, HELP, run(python("ingestd", "--help")))
                _add(figures, STATUS_ALONE, _status(made))
                _add(figures, SYNC, made.sync())
                _add(figures, POLARS, run([sys.executable, "-c", "import polars"]))
                _add(figures, EMPTY, run([sys.executable, "-c", ""]))
                figures.add(FIRST_REQUEST, _start_and_kill(waiting, service))
            with made.daemon():
                for _ in range(_REPEATED):
                    _add(figures, STATUS, _status(made))
    return _report(options, figures)


class _RefusingService:
    """A service in a thread that responds 503 to every request, and records when the first request arrived."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._first_at = 0.0
        self._arrived = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def forget(self) -> None:
        self._arrived.clear()

    def first_request_at(self) -> float:
        """Wait for the first request since `forget`, and return its time on the machine's monotonic clock."""
        if not self._arrived.wait(_REQUEST_SECONDS):
            raise Wrong(f"the daemon sent no request within {_REQUEST_SECONDS:.0f} s")
        return self._first_at

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # shut down
                return
            with connection, contextlib.suppress(OSError):
                if connection.recv(65536) and not self._arrived.is_set():
                    self._first_at = time.monotonic()
                    self._arrived.set()
                connection.sendall(
                    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )


def _site_with_pending_entries(folder: Path, service: _RefusingService) -> Site:
    """Return a daemon that was killed after it had read all files and delivered nothing."""
    made = many_pipelines(folder, service.url, "bench", "Bench", SINKS, rows=PENDING // SINKS)
    with _daemon(made) as daemon:
        deadline = time.monotonic() + _READING_SECONDS
        while (found := made.status()["pending"]) < PENDING:
            if time.monotonic() > deadline:
                raise Wrong(f"{found} of {PENDING} entries are pending")
            time.sleep(0.2)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
    return made


def _status(made: Site) -> Cost:
    return run(python("ingestd", "status", "-c", str(made.configuration)))


def _start_and_kill(made: Site, service: _RefusingService) -> float:
    """Start the daemon, and kill it at its first request. Return the time until this request, in seconds."""
    service.forget()
    started = time.monotonic()
    with _daemon(made) as daemon:
        taken = service.first_request_at() - started
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
    return taken


def _daemon(made: Site) -> contextlib.AbstractContextManager[Running]:
    return running(python("ingestd", "run", "-c", str(made.configuration)), log=made.folder / "daemon.log")


def _add(figures: Rounds, name: str, cost: Cost) -> None:
    figures.add(name, cost.seconds)
    figures.add(f"{name} cpu", cost.cpu_seconds)
    figures.add(f"{name} peak", cost.peak_mib)


def _report(options: Options, figures: Rounds) -> Report:
    figures.values["goal"] = [_GOAL_SECONDS] * figures.count(FIRST_REQUEST)
    for name, goal in _GOALS_OF_COMMANDS.items():
        figures.values[f"{name} goal"] = [goal] * figures.count(name)
    commands = (HELP, STATUS, STATUS_ALONE, SYNC, POLARS, EMPTY)
    around = options.surroundings(figures)
    return Report(
        name="start",
        title="start: commands and the daemon, from exec",
        header=("", "seconds", "CPU", "peak MiB"),
        lines=[
            *(
                (
                    name,
                    figures.spread(name, seconds),
                    figures.spread(f"{name} cpu", seconds),
                    figures.spread(f"{name} peak", whole),
                )
                for name in commands
            ),
            (FIRST_REQUEST, figures.spread(FIRST_REQUEST, seconds), "-", "-"),
        ],
        ratios=[
            *(
                (f"{name} over {goal} s", figures.ratio(name, f"{name} goal"), "1 or less")
                for name, goal in _GOALS_OF_COMMANDS.items()
            ),
            ("sync over importing polars", figures.ratio(SYNC, POLARS), "1.2 or less"),
            ("sync over importing polars, CPU", figures.ratio(f"{SYNC} cpu", f"{POLARS} cpu"), "1.2 or less"),
            (f"first request over {_GOAL_SECONDS} s", figures.ratio(FIRST_REQUEST, "goal"), "1 or less"),
            ("first request over importing polars", figures.ratio(FIRST_REQUEST, POLARS), ""),
        ],
        notes=[
            surroundings_note(around),
            f"Each case is measured {_REPEATED} times in a round. The modules are compiled, and the page cache is warm.",
        ],
        summary=around | {"seconds": {name: round(figures.median(name), 4) for name in (*commands, FIRST_REQUEST)}},
    )
