"""Drift checks: a closed sink is read while its sources are read, and compared after them, with one request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.delivery.delivery_limits import MissingSink
from ingestd.delivery.drift import DriftChecker, DriftCheckResult
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.settings.drift import Mode
from ingestd.telemetry import Event, event_name
from tests.support.delivery_rig import rig
from tests.support.desired_entries import desire_all
from tests.support.document_server import DocumentServer, Store


class Scene:
    """A sink with the delivered entries ``a`` and ``b``. ``now``: the time of the checker."""

    def __init__(self, mirror: SqliteMirror, server: DocumentServer, address: SinkAddress, events: list[Event]) -> None:
        self.mirror, self.server, self.address, self.events, self.now = mirror, server, address, events, 0.0
        (self.sink,) = server.store.by_label(address.name)
        self.checker: DriftChecker

    async def read_ahead(self, *, is_open: bool = False) -> None:
        await self.checker.read_ahead(self.address, is_open=lambda: is_open)

    async def check(self, *, mode: Mode = "report", doubt: bool = True) -> DriftCheckResult:
        return await self.checker.check(self.address, pipelines=["desires"], mode=mode, doubt=doubt)

    @property
    def readings(self) -> int:
        return sum(request.path.endswith(f"/data-sink/{self.sink}") for request in self.server.requests)


@pytest.fixture
def server() -> Iterator[DocumentServer]:
    with DocumentServer(Store()) as running:
        yield running


@asynccontextmanager
async def scene(folder: Path, server: DocumentServer, *, missing_sink: MissingSink = "create") -> AsyncIterator[Scene]:
    address = SinkAddress(workspace=server.workspace(), by="label", name="Parts")
    with closing(SqliteMirror.open(folder / "state.db")) as mirror:
        desire_all(mirror, address, {"a": ("1", "scalar"), "b": ("1", "scalar")})
        async with rig(url=server.url, deliverable=mirror.delivery) as running:
            await running.drained()
            made = Scene(mirror, server, address, running.events)
            made.checker = DriftChecker(
                mirror=mirror.delivery,
                drift=mirror.drift,
                client=running.client,
                emit=running.events.append,
                missing_sink=missing_sink,
                clock=lambda: made.now,
            )
            server.forget_requests()
            made.events.clear()
            yield made


async def test_what_was_read_ahead_is_compared_with_what_the_sources_named_since(
    server: DocumentServer, tmp_path: Path
) -> None:
    async with scene(tmp_path, server) as made:
        made.server.store.entries[made.sink]["b"]["value"] = "theirs"
        await made.read_ahead()
        desire_all(made.mirror, made.address, {"a": ("2", "scalar"), "b": ("1", "scalar")})
        checked = await made.check()
        assert checked.status is not None
        # `a` is pending now, so the service does not have to have it.
        assert (checked.status.entries, checked.status.changed) == (2, 1)
        assert made.readings == 1


@pytest.mark.parametrize(
    ("later", "doubt", "readings"),
    [(60.0, True, 1), (60.5, True, 2), (0.0, False, 2)],
    ids=["a minute old", "older", "a check on request"],
)
async def test_what_was_read_ahead_is_used_for_a_minute_and_only_after_a_doubt(
    server: DocumentServer, tmp_path: Path, later: float, readings: int, *, doubt: bool
) -> None:
    async with scene(tmp_path, server) as made:
        await made.read_ahead()
        made.now = later
        checked = await made.check(doubt=doubt)
        assert checked.status is not None
        assert (checked.status.failure, made.readings) == ("", readings)
        await made.check()
        assert made.readings == readings + 1, "it is used once"


async def test_a_sink_that_gets_entries_already_is_not_read_ahead(server: DocumentServer, tmp_path: Path) -> None:
    async with scene(tmp_path, server) as made:
        await made.read_ahead(is_open=True)
        assert made.readings == 0
        await made.check()
        assert made.readings == 1


@pytest.mark.parametrize(
    ("mode", "handled", "left", "names"),
    [
        ("report", 0, 1, ["drift_found"]),
        ("adopt", 1, 0, ["drift_found", "drift_adopted"]),
        ("repair", 1, 0, ["drift_found", "drift_repaired"]),
    ],
)
async def test_a_difference_is_handled_by_the_mode_of_the_check(
    server: DocumentServer, tmp_path: Path, *, mode: Mode, handled: int, left: int, names: list[str]
) -> None:
    async with scene(tmp_path, server) as made:
        made.server.store.entries[made.sink]["b"]["value"] = "theirs"
        checked = await made.check(mode=mode, doubt=False)
        assert ([event_name(type(event)) for event in made.events], checked.handled) == (names, handled)
        again = await made.check(doubt=False)
        assert again.status is not None
        assert again.status.changed == left


@pytest.mark.parametrize("missing_sink", ["create", "stop"])
async def test_a_check_has_the_entries_of_a_lost_sink_pending_unless_the_service_must_keep_it(
    server: DocumentServer, tmp_path: Path, missing_sink: MissingSink
) -> None:
    async with scene(tmp_path, server, missing_sink=missing_sink) as made:
        made.server.store.delete_sink(made.address.workspace, made.sink)
        checked = await made.check()
        assert checked.lost is (missing_sink == "create")
        if missing_sink == "stop":
            assert checked.status is not None
            assert "service.missing_sink is 'stop'" in checked.status.failure
            assert checked.status.found == 0
        (lane,) = await made.mirror.delivery.lanes()
        assert (await made.mirror.delivery.claim(lane.id, max_items=9, max_bytes=9_999) is not None) is checked.lost
