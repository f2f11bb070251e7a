"""Events of the daemon's lifecycle, parts and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonReady(Event):
    """The daemon holds the state file; reading and delivery begin."""

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
    """A pipeline has the source and sink of the removed pipeline ``before``, and continues with its state."""

    pipeline: str
    before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Event):
    """A signal requested the stop; the daemon drains."""

    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopped(Event):
    """The daemon has stopped normally. ``seconds``: time since the request."""

    seconds: float
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOverran(Event):
    """A step did not end within the drain time, so the process exited. The next start continues from the state file."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    seconds: float
    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlUnavailable(Event):
    """The control socket could not be created: commands that change the state can't reach this daemon."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    socket: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerOpened(Event):
    """The listener for metrics, health and the page is open; ``address`` is its URL, or the path of its Unix socket."""

    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerUnavailable(Event):
    """The listener could not be opened, such as because its port is in use. It is tried again; the daemon continues."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    address: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerUnreachable(Event):
    """The service manager's notify socket failed. The daemon continues; the manager may restart it."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFailed(Event):
    """A part (a source, a lane, a schedule) ended with an unexpected exception and restarts; the others continue.

    ``traceback`` is empty except for the first failure of a series.
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
    """The state file cannot be opened now (such as on a full disk); the daemon waits and retries."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUnwritable(Event):
    """A write to the state file failed. Reading pauses; delivery continues with acknowledgements in memory."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWritable(Event):
    """The state file can be written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationReloaded(Event):
    """The configuration and its secrets were read again, what changed is in use, and waiting lanes retry.

    ``by``: an account or SIGHUP. ``added`` to ``restarted``: names of pipelines; ``unchanged``: the number of the others.
    """

    by: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    renamed: tuple[str, ...]
    restarted: tuple[str, ...]
    unchanged: int
    service_changed: bool
    key_changed: bool
    rejected_changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadRefused(Event):
    """The configuration has mistakes or can't be applied; the daemon keeps the one in use."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    by: str
    mistakes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUnreadable(Event):
    """The API key could not be read again after a 401; the old key remains in use."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailed(Event):
    """A command ended with an unexpected exception, a bug in ingestd."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    traceback: str
