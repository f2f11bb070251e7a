"""The report of a lane: its status, and why it is blocked, for pages and commands, the log and the state file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from ingestd.core.address import SinkAddress
from ingestd.core.clock import Now, moment
from ingestd.core.errors import MirrorFull
from ingestd.delivery.blocker import Blocker
from ingestd.mirror.port import LaneBlocker, LaneState
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.telemetry.catalogue.delivery import DeliveryDelayed, DeliveryPaused, DeliveryResumed
from ingestd.telemetry.event import Emit

LaneStatus: TypeAlias = Literal["idle", "delivering", "backing off", "paused"]


class LaneReport(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a lane. Times are seconds since the epoch.

    ``since``: when the blocker appeared, or without a blocker, when the status began. ``until``: the time of the next attempt
    (backing off, paused). ``sentence``: why the lane is blocked and what to do; empty without a blocker. The sentence stays
    until an entry is delivered.
    """

    sink: SinkAddress
    status: LaneStatus
    since: float
    until: float | None = None
    sentence: str = ""

    def __str__(self) -> str:
        if not self.sentence:
            return f"{self.sink}: {self.status}"
        retry = f", next try {moment(self.until)}" if self.until is not None else ""
        return f"{self.sink}: {self.status} since {moment(self.since)}{retry}: {self.sentence}"


class LaneReporter:
    """The report of one lane. ``reason``: why the lane is blocked; empty if it is not blocked. ``on_report``: see `Lane`."""

    def __init__(
        self, state: LaneState, *, mirror: DeliveryStore, emit: Emit, now: Now, on_report: Callable[[], None]
    ) -> None:
        self.reason = ""
        self.report = LaneReport(sink=state.address, status="idle", since=now())
        self._lane = state.id
        self._sink = state.address
        self._mirror = mirror
        self._emit = emit
        self._now = now
        self._on_report = on_report
        # An earlier run of the daemon may have stored a reason.
        self._is_reason_stored = True

    @property
    def since(self) -> float:
        """The time since which the lane is blocked; the present time if it is not blocked."""
        return self.report.since if self.reason else self._now()

    async def block(
        self, status: Literal["backing off", "paused"], sentence: str, *, since: float, until: float
    ) -> None:
        """Report the reason, after it is stored for `ingestd status`."""
        self.reason = sentence
        self._is_reason_stored = True
        with contextlib.suppress(MirrorFull):
            blocker = LaneBlocker(status=status, sentence=sentence, since=since, until=until)
            await self._mirror.note_blocker(self._lane, blocker)
        self._set(LaneReport(sink=self._sink, status=status, since=since, until=until, sentence=sentence))

    async def clear(self) -> None:
        """Delete the reason here and in the mirror."""
        self.reason = ""
        if self._is_reason_stored:
            with contextlib.suppress(MirrorFull):
                await self._mirror.note_blocker(self._lane, None)
                self._is_reason_stored = False

    def log(self, blocker: Blocker, seconds: float, since: float, *, failures: int) -> None:
        """Log that the lane waits for ``seconds`` after ``failures`` consecutive failures."""
        sink, seconds, begun = str(self._sink), round(seconds, 3), moment(since)
        if blocker.reaction == "pause":
            self._emit(DeliveryPaused(sink=sink, sentence=blocker.sentence, seconds=seconds, since=begun))
        else:
            self._emit(
                DeliveryDelayed(sink=sink, sentence=blocker.sentence, seconds=seconds, failures=failures, since=begun)
            )

    def unblock(self) -> None:
        """Report the end of the blocker, if there is one."""
        if self.reason:
            self.reason = ""
            self._emit(DeliveryResumed(sink=str(self._sink), since=moment(self.report.since)))
            self._set(LaneReport(sink=self._sink, status="delivering", since=self._now()))

    def fail(self, sentence: str) -> None:
        """Report an unforeseen failure."""
        self._set(LaneReport(sink=self._sink, status="paused", since=self._now(), sentence=sentence))

    def set_status(self, status: LaneStatus) -> None:
        """Set the status; the reason of a blocker remains in the report until entries are acknowledged."""
        if status != self.report.status or self.report.until is not None:
            self._set(LaneReport(sink=self._sink, status=status, since=self.since, sentence=self.reason))

    def _set(self, report: LaneReport) -> None:
        self.report = report
        self._on_report()
