"""Events of the daemon's life: started, ready, asked to stop, stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonReady(Event):
    """Everything is wired and the state file is ours; reading and delivery begin."""

    version: str
    pid: int
    configuration: str
    state: str
    pipelines: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDue(Event):
    """The schedule woke a pipeline."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "debug"

    pipeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Event):
    """A signal asked the daemon to stop; it drains."""

    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopped(Event):
    """Everything was put down in order. ``seconds``: from the request to here."""

    seconds: float
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOverran(Event):
    """Something did not end within the time for draining and was cut off; the next start goes on from the state file."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    seconds: float
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlUnavailable(Event):
    """No socket could be made beside the state file: commands that change something can't ask this daemon."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    socket: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerUnreachable(Event):
    """The service manager's notify socket refused a message; the daemon runs on, the manager may restart it."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    reason: str
