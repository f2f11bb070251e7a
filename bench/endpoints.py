"""The receiver of a measurement: the counting server, or the real service with a key and a workspace."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from bench.child import Running, python, run, running
from bench.counting import WORKSPACE, Tally
from bench.flame import recorded
from bench.load import keys_of, value_of

_NEXT = re.compile(r'<([^>]*)>; rel="next"')


class Wrong(Exception):
    """The received entries differ from the sent entries, so the figures of this run are invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """URL, key and workspace of the receiver; ``child`` is its process."""

    url: str
    api_key: str
    workspace: str
    child: Running

    def ask(self, method: str, path: str, body: object = None, *, timeout: float = 60.0) -> Any:
        """Send one request on a new connection and return the decoded response.

        Raises:
            Wrong: The status of the response is 300 or more.
        """
        with contextlib.closing(self.connect(timeout=timeout)) as connection:
            content = None if body is None else json.dumps(body).encode()
            connection.request(method, path, body=content, headers=self.headers)
            response = connection.getresponse()
            text = response.read()
        if response.status >= 300:
            raise Wrong(f"{method} {path} got {response.status}: {text[:300]!r}")
        return json.loads(text) if text else None

    def connect(self, *, timeout: float = 60.0) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)

    @property
    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.api_key, "ClientId": "bench", "Content-Type": "application/json"}

    @property
    def sinks(self) -> str:
        return f"/v1/workspace/{self.workspace}/data-sink"


class Counting(Endpoint):
    """The counting server, with its tally."""

    def tally(self) -> Tally:
        return msgspec.convert(self.ask("GET", "/tally"), Tally)

    def start_anew(self) -> None:
        self.ask("POST", "/tally")


@contextlib.contextmanager
def counting_server(folder: Path, *more: str) -> Iterator[Counting]:
    with running(python("bench.counting", *more), log=folder / "counting.log") as child:
        port = child.line()
        yield Counting(url=f"http://127.0.0.1:{port}", api_key="bench", workspace=WORKSPACE, child=child)


@contextlib.contextmanager
def workspace_service(folder: Path, *more: str, **environment: str) -> Iterator[Endpoint]:
    """Run the service with an empty data folder below ``folder``, and without a rate limit."""
    folder.mkdir()
    data = folder / "data"
    if "WORKSPACED_DATABASE_URL" in environment:
        run(python("workspaced", "migrate", "--data", str(data)), **environment)
    create = python("workspaced", "keys", "create", "bench", "--role", "owner", "--data", str(data))
    key = run(create, **environment).output.split()[-1]
    with _serving(folder, *more, **environment) as (url, child):
        service = Endpoint(url=url, api_key=key, workspace="", child=child)
        made = service.ask("POST", "/v1/workspace", {"label": "Bench"})
        yield replace(service, workspace=made["id"])


@contextlib.contextmanager
def further_host(service: Endpoint, folder: Path, **environment: str) -> Iterator[Endpoint]:
    """Run another process of ``service``. Pass the ``folder`` and ``environment`` of its `workspace_service`."""
    with _serving(folder, **environment) as (url, child):
        yield replace(service, url=url, child=child)


@contextlib.contextmanager
def _serving(folder: Path, *more: str, **environment: str) -> Iterator[tuple[str, Running]]:
    command = python("workspaced", "serve", "--data", str(folder / "data"), "--port", "0", *more)
    extra = {"WORKSPACED_REQUESTS_PER_MINUTE": "0", **environment}
    with running(command, log=folder / "service.log", extra=extra) as child:
        url = child.line(lambda line: line.startswith("http"))
        with recorded(child.process.pid, "workspaced serve"):
            yield url, child


def check_counted(tally: Tally, rows: int, wrong_keys: list[str]) -> None:
    """Raise `Wrong` if the number of distinct keys is not ``rows``, or if there are ``wrong_keys``."""
    if tally.distinct != rows or wrong_keys:
        raise Wrong(f"{tally.distinct} of {rows} entries arrived; with a wrong value: {wrong_keys[:5]}")


def check_stored(service: Endpoint, label: str, rows: int, expected: dict[str, str]) -> None:
    """Raise `Wrong` if the sink does not have ``rows`` entries, or an entry of ``expected`` (key to value) differs."""
    sink = next(sink for sink in service.ask("GET", f"{service.sinks}/list") if sink["label"] == label)
    place = f"{service.sinks}/{sink['id']}"
    held = count_stored(service, place)
    wrong = [
        key for key, value in expected.items() if service.ask("GET", f"{place}/{quote(key, safe='')}")["value"] != value
    ]
    if held != rows or wrong:
        raise Wrong(f"the sink holds {held} entries of {rows}; with a wrong value: {wrong[:5]}")


def check_loaded(service: Endpoint, label: str, seed: int, count: int) -> None:
    """Raise `Wrong` if the sink does not have the ``count`` entries of `bench.load`. About twenty values are compared."""
    keys = keys_of(seed, count)
    check_stored(service, label, count, {key: value_of(key) for key in keys[:: max(1, count // 20)]})


def count_stored(service: Endpoint, path: str) -> int:
    """Read the whole sink at this path, and return the number of its entries."""
    held = 0
    with contextlib.closing(service.connect(timeout=120.0)) as connection:
        connection.request("GET", path, headers=service.headers)
        response = connection.getresponse()
        tail = b""
        while piece := response.read(1 << 20):
            piece = tail + piece
            held += piece.count(b'"key":')
            tail = piece[-5:]
    return held


def walk_pages(service: Endpoint, path: str, *, most: int) -> int:
    """Follow the links of a list from page to page, up to ``most`` pages. Return the number of pages that were read."""
    with contextlib.closing(service.connect()) as connection:
        for page in range(1, most + 1):
            connection.request("GET", path, headers=service.headers)
            response = connection.getresponse()
            text = response.read()
            if response.status != 200:
                raise Wrong(f"GET {path} got {response.status}: {text[:300]!r}")
            following = _NEXT.search(response.getheader("Link") or "")
            if following is None:
                return page
            path = following[1]
    return most
