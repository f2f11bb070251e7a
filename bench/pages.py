"""The pages of the service and the daemon with a million entries, compared with pages that read no entries."""

from __future__ import annotations

import html
import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from bench.child import HANGING_SECONDS
from bench.daemon import Site, site
from bench.endpoints import Endpoint, Wrong, workspace_service
from bench.figures import Report, Rounds, milliseconds
from bench.rounds import Options, surroundings_note

GOAL_SECONDS = 1.0
_REPEATED = 5
"""How often a page is requested in a round."""
_BULK = 5_000
_SINKS = 200
_LINKS = 20
"""The number of links to the next page that lead to the measured later page."""
SIGN_IN = "service: the form for signing in, which reads nothing"
API = "service: the API's page of 100 entries"
HEALTH = "daemon: /healthz"
_FLOORS = (SIGN_IN, API, HEALTH)
_NEXT = re.compile(r'rel="next" href="([^"]*)"')

Connect = Callable[[], http.client.HTTPConnection]


class _SocketConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, file: Path) -> None:
        super().__init__("localhost", timeout=60.0)
        self._file = file

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self._file))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pages:
    """The pages of one program. ``headers`` identify the user."""

    connect: Connect
    headers: Mapping[str, str]

    def get(self, path: str) -> bytes:
        """Return a page."""
        return self._ask("GET", path, None)

    def post(self, path: str, form: Mapping[str, str]) -> bytes:
        """Send a form, and return the page that follows."""
        return self._ask("POST", path, urlencode(form))

    def begin(self, path: str) -> None:
        """Receive the first byte of a page, and close the connection."""
        connection = self.connect()
        try:
            connection.request("GET", path, headers=dict(self.headers))
            response = connection.getresponse()
            if response.status != 200 or not response.read(1):
                raise Wrong(f"GET {path} got {response.status}")
        finally:
            connection.close()

    def later(self, path: str, links: int = _LINKS) -> str:
        """Return the path of the page that is ``links`` pages after ``path``, or of the last page."""
        for _ in range(links):
            following = _NEXT.search(self.get(path).decode())
            if following is None:
                break
            path = html.unescape(following[1])
        return path

    def _ask(self, method: str, path: str, form: str | None) -> bytes:
        connection = self.connect()
        headers = {**self.headers, **({"Content-Type": "application/x-www-form-urlencoded"} if form else {})}
        try:
            connection.request(method, path, body=form, headers=headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise Wrong(f"{method} {path} got {response.status}: {body[:300]!r}")
        return body


@dataclass(slots=True)
class _Bench:
    figures: Rounds = field(default_factory=Rounds)
    calls: dict[str, Callable[[], object]] = field(default_factory=dict)

    def add(self, name: str, call: Callable[[], object]) -> None:
        self.calls[name] = call

    def measure(self) -> None:
        for name, call in self.calls.items():
            for _ in range(_REPEATED):
                started = time.perf_counter()
                call()
                self.figures.add(name, time.perf_counter() - started)


def measure(options: Options) -> Report:
    bench = _Bench()
    with workspace_service(options.folder / "service") as service:
        sink, moment = _fill(service, options.rows)
        made = _daemon_site(options.folder / "daemon", service, options.rows)
        _service_views(bench, service, sink, moment, options.rows)
        with made.daemon() as daemon:
            daemon.line(lambda line: '"partition_acknowledged"' in line, within=HANGING_SECONDS)
            _check_delivered(made, options.rows)
            _daemon_views(bench, made, options.rows)
            for _ in options.rounds(bench.figures):
                bench.measure()
    return _report(bench.figures, list(bench.calls), options)


def _fill(service: Endpoint, rows: int) -> tuple[str, str]:
    """Fill a sink, and change a tenth of its entries. Return the sink's path in the API, and a time before the changes."""
    made = service.ask("POST", service.sinks, {"label": "Parts"})
    path = f"{service.sinks}/{made['id']}"

    def write(count: int, digit: int) -> None:
        for start in range(0, count, _BULK):
            entries = [
                {"key": f"p{index:08d}.mass", "value": f"{index}.{digit} kg"}
                for index in range(start, min(start + _BULK, count))
            ]
            service.ask("POST", f"{path}/mass", entries)

    write(rows, 1)
    history = path.replace("/data-sink/", "/data-sink-history/")
    service.ask("PATCH", history, {"changes": 100, "days": 30})
    write(_BULK, 2)
    moment = str(service.ask("GET", history)["knownFrom"])
    write(rows // 10, 3)
    for number in range(_SINKS):
        service.ask("POST", service.sinks, {"label": f"Sink {number}"})
    return path, moment.rstrip("Z")


def _daemon_site(folder: Path, service: Endpoint, rows: int) -> Site:
    """Configure a daemon that delivers ``rows`` entries from its file, and rejects a tenth as many rows."""
    made = site(folder, service, key="{part}.mass", value="{mass} kg", label="Delivered")
    lines = [f"q{number:08d},{number}.5\n" for number in range(rows)]
    unusable = [f",{number}\n" for number in range(rows // 10)]
    (made.drop / "parts.csv").write_text("part,mass\n" + "".join(lines) + "".join(unusable))
    settings = json.loads(made.configuration.read_text())
    made.configuration.write_text(json.dumps(settings | {"listen": {"socket": "var/listen"}}, indent=1))
    return made


def _check_delivered(made: Site, rows: int) -> None:
    found = made.status()
    if found["pending"] or found["rejected"] != rows // 10:
        raise Wrong(f"the daemon has {found['pending']} pending and {found['rejected']} rejected entries")


def _signed_in(service: Endpoint) -> _Pages:
    connection = service.connect()
    headers = {"Origin": service.url, "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/ui/sign-in", body=urlencode({"key": service.api_key}), headers=headers)
    response = connection.getresponse()
    cookie = (response.getheader("Set-Cookie") or "").partition(";")[0]
    connection.close()
    if not cookie:
        raise Wrong(f"signing in got {response.status}")
    return _Pages(connect=service.connect, headers={"Cookie": cookie, "Origin": service.url})


def _service_views(bench: _Bench, service: Endpoint, sink_path: str, moment: str, rows: int) -> None:
    pages = _signed_in(service)
    api = _Pages(connect=service.connect, headers=service.headers)
    workspace = f"/ui/workspaces/{service.workspace}"
    sink = f"{workspace}/sinks/{service.ask('GET', f'{sink_path}?take=1')['visibleId']}"
    entry = f"{sink}/entries/p00000007.mass"
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', pages.get("/ui/workspaces").decode())
    if token is None:
        raise Wrong("the page has no form")
    bench.add(SIGN_IN, lambda: api.get("/ui/sign-in"))
    bench.add(API, lambda: api.get(f"{sink_path}?take=100&sortedBy=key"))
    last = f"p{rows - 1:08d}"
    for name, path in {
        "workspaces": "/ui/workspaces",
        "data sinks": workspace,
        "entries": sink,
        "entries, a later page": pages.later(sink),
        "entries, from the end": f"{sink}?sort=key-last",
        "entries with a prefix, in natural order": f"{sink}?prefix={last[:-3]}&sort=natural",
        "entries of a range of values": f"{sink}?least=1",
        "filter that finds none": f"{sink}?type=none",
        "groups of keys": f"{sink}/groups",
        "search of keys for the last one": f"{sink}?search={last}",
        "search of a whole key": f"{sink}?search={last}.mass",
        "search of keys for none": f"{sink}?search=none+has+it",
        "search of values for none": f"{sink}?search=none+has+it&in=value",
        "search of keys and values for none": f"{sink}?search=none+has+it&in=all",
        "search of the workspace for none": f"{workspace}/search?search=none+has+it",
        "entry": entry,
        "form of an entry": f"{entry}/edit",
        "history of an entry, with chart": f"{entry}/history",
        "comparison of two moments": f"{sink}/history?from={quote(moment)}",
        "comparison, a later page": pages.later(f"{sink}/history?from={quote(moment)}"),
        "form to delete the data sink": f"{sink}/delete",
        "audit log": "/ui/audit",
        "audit log, a later page": pages.later("/ui/audit"),
    }.items():
        bench.add(f"service: {name}", lambda path=path: pages.get(path))  # type: ignore[misc]
    table = "".join(f"p{index * 7:08d}.mass\tnew {index}\n" for index in range(_BULK))
    form = {"form_token": token[1], "table": table}
    bench.add(f"service: preview of an import of {_BULK} rows", lambda: pages.post(f"{sink}/import", form))


def _daemon_views(bench: _Bench, made: Site, rows: int) -> None:
    pages = _Pages(connect=lambda: _SocketConnection(made.folder / "var" / "listen"), headers={})
    bench.add(HEALTH, lambda: pages.get("/healthz"))
    for name, path in {
        "metrics": "/metrics",
        "pipelines": "/",
        "one pipeline": "/pipelines/parts",
        "trace of a key": f"/trace?key=q{rows - 1:08d}.mass",
        "trace with the steps of its mapping": f"/trace?key=q{rows - 1:08d}.mass&steps=1",
        "rejected": "/rejected",
        "rejected, a later page": pages.later("/rejected"),
        "rejected with a filter that finds none": "/rejected?reason=none+has+it",
        "why, of a file": "/files?name=parts.csv",
        "drift": "/drift",
    }.items():
        bench.add(f"daemon: {name}", lambda path=path: pages.get(path))  # type: ignore[misc]
    bench.add("daemon: export of rejections, until its first byte", lambda: pages.begin("/rejected.csv"))


def _report(figures: Rounds, names: list[str], options: Options) -> Report:
    around = options.surroundings(figures)
    views = [name for name in names if name not in _FLOORS]
    slowest = max(views, key=figures.median)
    figures.add("goal", GOAL_SECONDS)
    return Report(
        name="pages",
        title=f"pages over {options.rows:,} entries: milliseconds until the whole page was received".replace(",", " "),
        header=("", "median", "slowest", "over the floor"),
        lines=[
            (
                name,
                milliseconds(figures.median(name)),
                milliseconds(max(figures.values[name])),
                f"{figures.median(name) / figures.median(HEALTH if name.startswith('daemon') else SIGN_IN):.1f}",
            )
            for name in (*(name for name in _FLOORS if name in names), *views)
        ],
        ratios=[(f"{slowest} / {GOAL_SECONDS:.0f} s", figures.ratio(slowest, "goal"), "less than 1")],
        notes=(
            surroundings_note(around),
            f"Each page is requested {_REPEATED} times in a round, on a new connection. The floor is the service's sign-in form,",
            "or /healthz of the daemon. A page of a search or comparison reads a bounded number of entries.",
        ),
        summary=around | {name: round(figures.median(name), 5) for name in names},
    )
