"""Texts for an operator during a failure: `ingestd status` and the log, in each situation.

The texts are in ``tests/golden/delivery``; times, ports and ids are masked. Each has the problem, its start, what waits, and
what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from ingestd.client.transport import Timeouts
from ingestd.core.address import SinkAddress
from ingestd.core.backoff import Backoff
from ingestd.daemon.status_text import sink_line
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.delivery_rig import rig, wake_callback
from tests.support.desired_entries import desire_all
from tests.support.document_server import Delay, DocumentServer, DropAfter, Fault, Garbage, Refuse, Truncate
from tests.support.golden_texts import DELIVERY_TEXTS, check_delivery_text, logged, masked

PATIENT = DeliveryLimits(
    retry=Backoff(base_seconds=3_600, cap_seconds=3_600),
    pause=Backoff(base_seconds=3_600, cap_seconds=3_600),
    grace_seconds=0,
)
MASS_BUDGET = SinkAddress(workspace="Bench", by="label", name="Mass budget")
OTHER_KEY = b'{"id":"1","key":"another","value":"1","dataType":"scalar","entries":[]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """``prepare`` sets up the service; ``fault`` is applied to every request for which ``when`` holds."""

    fault: Fault | None = None
    when: Callable[[str], bool] = lambda _: True
    prepare: Callable[[DocumentServer], object] = lambda _: None
    url: Callable[[DocumentServer], str] = lambda server: server.url
    to: SinkAddress = MASS_BUDGET
    key: str = "test-key"
    limits: DeliveryLimits = PATIENT
    read_seconds: float = 10


def _writes(method: str) -> bool:
    return method != "GET"


def _twice(make: Callable[[DocumentServer], object]) -> Callable[[DocumentServer], object]:
    return lambda server: (make(server), make(server))


def _sink(server: DocumentServer) -> object:
    (workspace,) = server.store.workspaces
    return server.store.create_sink(workspace, {"label": "Mass budget"})


def _by(by: str, name: str) -> SinkAddress:
    return SinkAddress(workspace="Bench", by=by, name=name)  # type: ignore[arg-type]


OF_LIMITS = {"takes-no-connection", "does-not-read", "connections-busy", "entry-refused", "request-too-large"}
"""Situations that `test_operator_texts_of_limits` covers."""

SITUATIONS = {
    "nothing-listens": Situation(url=lambda _: "http://127.0.0.1:1"),
    "host-unknown": Situation(url=lambda _: "http://no-such-host.invalid"),
    "no-tls-there": Situation(url=lambda server: server.url.replace("http:", "https:")),
    "response-too-late": Situation(fault=Delay(seconds=0.5), read_seconds=0.05),
    "connection-closed": Situation(fault=DropAfter(), when=_writes),
    "response-truncated": Situation(fault=Truncate()),
    "proxy-page-as-success": Situation(fault=Garbage()),
    "proxy-page-500": Situation(fault=Garbage(status=500)),
    "proxy-page-502": Situation(fault=Garbage(status=502)),
    "response-about-another-key": Situation(
        prepare=_sink,
        fault=Garbage(status=201, body=OTHER_KEY, content_type="application/json"),
        when=_writes,
    ),
    "redirected": Situation(fault=Refuse(status=302, headers={"Location": "https://user:secret@other.test/v1?key=1"})),
    "key-unknown": Situation(key="another-key"),
    "not-allowed": Situation(fault=Refuse(status=403)),
    "no-such-workspace": Situation(to=SinkAddress(workspace="Labor", by="label", name="Mass budget")),
    "two-workspaces-of-one-label": Situation(prepare=lambda server: server.workspace("Bench")),
    "two-sinks-of-one-label": Situation(prepare=_twice(_sink)),
    "no-such-sink": Situation(to=_by("visible_id", "SNK-9")),
    "throttled": Situation(fault=Refuse(status=429, headers={"Retry-After": "120"})),
    "unavailable": Situation(fault=Refuse(status=503, headers={"Retry-After": "60"})),
    "quota-used-up": Situation(
        prepare=_sink, fault=Refuse(status=409, headers={"X-Error-Code": "quota_exceeded"}), when=_writes
    ),
    "operation-not-offered": Situation(prepare=_sink, fault=Refuse(status=501), when=_writes),
    "not-the-service": Situation(fault=Refuse(status=405)),
}


async def texts_of(situation: Situation, folder: Path) -> str:
    """Return status line and log when the lane is blocked."""
    mirror = SqliteMirror.open(folder / "ingestd.db")
    try:
        with DocumentServer() as server:
            server.workspace("Bench")
            situation.prepare(server)
            if situation.fault is not None:
                server.fault_of = lambda request: situation.fault if situation.when(request.method) else None
            async with rig(
                url=situation.url(server),
                api_key=situation.key,
                deliverable=mirror.delivery,
                limits=situation.limits,
                timeouts=Timeouts(connect_seconds=60, read_seconds=situation.read_seconds),
            ) as running:
                mirror.on_pending = wake_callback(running)
                values = {f"P-{n}": ("1.50", "scalar") for n in range(3)}
                await asyncio.to_thread(desire_all, mirror, situation.to, values)
                async with asyncio.timeout(60):
                    while (await asyncio.to_thread(mirror.status.sinks))[0].blocker is None:
                        pass
                (sink,) = mirror.status.sinks()
                reported = [event for event in running.events if event.level in {"warning", "error"}]
    finally:
        mirror.close()
    return masked("\n".join([sink_line(sink), *map(logged, reported)])) + "\n"


@pytest.mark.parametrize("name", SITUATIONS)
async def test_status_and_log_describe_the_problem_and_the_next_step(name: str, tmp_path: Path) -> None:
    text = await texts_of(SITUATIONS[name], tmp_path)
    check_delivery_text(name, text)
    assert "since TIME" in text
    assert "3 pending" in text
    assert "secret" not in text
    assert "key=1" not in text


async def test_a_deleted_sink_stops_its_lane_if_configured(tmp_path: Path) -> None:
    stops = replace(PATIENT, missing_sink="stop")
    mirror = SqliteMirror.open(tmp_path / "ingestd.db")
    to = MASS_BUDGET
    try:
        with DocumentServer() as server:
            workspace = server.workspace("Bench")
            async with rig(url=server.url, deliverable=mirror.delivery, limits=stops) as running:
                mirror.on_pending = wake_callback(running)
                await asyncio.to_thread(desire_all, mirror, to, {"a": ("1", "scalar"), "b": ("1", "scalar")})
                assert await running.drained() == []
                (sink,) = server.store.by_label("Mass budget")
                server.store.delete_sink(workspace, sink)
                await asyncio.to_thread(desire_all, mirror, to, {"a": ("2", "scalar"), "b": ("1", "scalar")})
                (report,) = await running.drained()
                assert report.status == "paused"
                line = masked(sink_line(mirror.status.sinks()[0]))
        assert server.store.by_label("Mass budget") == []
    finally:
        mirror.close()
    check_delivery_text("sink-deleted", f"{line}\n")


def test_every_golden_text_belongs_to_a_situation() -> None:
    assert {path.stem for path in DELIVERY_TEXTS.glob("*.txt")} == {*SITUATIONS, "sink-deleted", *OF_LIMITS}
