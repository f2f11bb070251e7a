"""What must hold of each write of the simulated hosts: when it leaves its process, and when the service has stored it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import httpx

from ingestd.wire.writer import HEADER, parse_writer
from tests.simulation.host import HostProcess
from tests.simulation.host_sources import SharedSource
from tests.simulation.leases import is_about_lease
from tests.simulation.service import SimulatedService


class WriteChecks:
    """Checks writes. ``violate`` is called with what is violated; ``counts``: see `TracedWorld`; ``now``: of the service.

    Call `watch` before the first request.
    """

    _service: SimulatedService
    _guarded: SharedSource

    def __init__(self, *, violate: Callable[[str], None], counts: Counter[str], now: Callable[[], float]) -> None:
        self._violate = violate
        self._counts = counts
        self._now = now
        self._by_label: dict[str, SharedSource] = {}
        self._newest: dict[tuple[str, str], int] = {}
        self._removed: set[tuple[str, str]] = set()
        self._changes: list[tuple[str, str, str | None]] = []

    def watch(self, service: SimulatedService, sources: Sequence[SharedSource], *, guarded: SharedSource) -> None:
        """Check the requests that a service gets. ``guarded``: the source with a guard."""
        self._service, self._guarded = service, guarded
        self._by_label = {one.sink.name: one for one in sources}

    def note_written(self, label: str, key: str, value: str | None) -> None:
        """Remember a change of an entry until its request is committed."""
        self._changes.append((label, key, value))

    def check_sent(self, request: httpx.Request) -> None:
        """Check that a write leaves its process while the lease of its epoch lasts."""
        if request.method == "GET" or is_about_lease(request):
            return
        writer, leases = parse_writer(request.headers.get(HEADER)), self._service.leases
        if writer is None or leases is None:
            self._violate("a write names no writer")
        elif leases.ends.get(writer.epoch, 0.0) <= self._now():
            self._violate(f"a write of epoch {writer.epoch} is sent after the lease of that epoch has ended")

    def check_committed(self, request: httpx.Request, response: httpx.Response) -> None:
        """Check what a request has changed, and note what it has read."""
        changes, self._changes = self._changes, []
        process = request.extensions["process"]
        store = self._service.inner.store
        if is_about_lease(request):
            if request.method == "PUT" and response.is_success and b'"epoch"' not in request.content:
                process.sinks_before = {sink for sink, entries in store.entries.items() if entries}
            return
        if request.method == "GET":
            *_, kind, sink = request.url.path.split("/")
            if kind == "data-sink" and response.is_success:
                process.read_back.add(sink)
            return
        self._counts["refused late requests"] += response.status_code == 409 and self._is_older(request)
        for label, key, value in changes:
            self._check_change(request, process, label, key, value)

    def _is_older(self, request: httpx.Request) -> bool:
        """Return whether a later lease than that of its process was granted."""
        writer, leases = parse_writer(request.headers.get(HEADER)), self._service.leases
        return writer is not None and leases is not None and writer.epoch < leases.epoch

    def _check_change(
        self, request: httpx.Request, process: HostProcess, label: str, key: str, value: str | None
    ) -> None:
        source = self._by_label[label]
        if self._is_older(request):
            self._violate(f"{label}: {key} is changed to {value} by a request that is older than the last grant")
        if process.is_older:
            if unread := set(self._service.inner.store.by_label(label)) & process.sinks_before - process.read_back:
                self._violate(f"{label}: {key} is changed by an older state that has not read back {unread}")
            if source.name not in process.named:
                self._violate(f"{label}: {key} is changed by an older state that has not read {source.name}")
        if value in source.unapproved:
            self._violate(f"{label}: {key} gets {value} of a held run")
        if value is None:
            if source is self._guarded and not source.may_shrink:
                self._violate(f"{label}: {key} is removed by a held run")
            self._removed.add((label, key))
            return
        newest = self._newest.get((label, key), 0)
        if int(value) < newest or (int(value) == newest and (label, key) in self._removed):
            self._violate(f"{label}: {key} went from {newest} back to {value}")
        self._removed.discard((label, key))
        self._newest[label, key] = int(value)
