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
class PipelineRenamed(Event):
    """A pipeline reads and writes what ``before`` did, which left the configuration: it goes on from where that one was."""

    pipeline: str
    before: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFailed(Event):
    """A part (a source, a lane, a schedule) ended with an unforeseen exception and starts again; the others go on.

    ``traceback`` is given for the first failure of a series and empty for the following ones.
    """

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    part: str
    sentence: str
    failures: int
    retry_in_seconds: float
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecovered(Event):
    """A part that had failed runs again."""

    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDelayed(Event):
    """The state file cannot be opened now (a full disk, say); the daemon waits and tries again by itself."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUnwritable(Event):
    """A write to the state file failed; reading pauses, delivery goes on and is settled in memory."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWritable(Event):
    """The state file can be written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationReloaded(Event):
    """The configuration and its secrets were read again, and waiting lanes try at once. ``by``: an account or SIGHUP."""

    by: str
    key_changed: bool
    restart_needed_for: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadRefused(Event):
    """The configuration file has mistakes; the daemon runs on as before."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    by: str
    mistakes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUnreadable(Event):
    """The API key was to be read again after a 401, and could not be; the old one stays in use."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailed(Event):
    """A command ended with an unforeseen exception: a mistake in ingestd itself."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    traceback: str
