"""Events of the daemon's lifecycle, parts and configuration."""

from __future__ import annotations

from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


class DaemonReady(Event, frozen=True, kw_only=True):
    """The daemon holds the state file; reading and delivery begin."""

    version: str
    pid: int
    configuration: str
    state: str
    pipelines: int
    pending: int


class PipelineDue(Event, frozen=True, kw_only=True):
    """The schedule woke a pipeline."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "debug"

    pipeline: str


class PipelineRenamed(Event, frozen=True, kw_only=True):
    """A pipeline has the source and sink of the removed pipeline ``before``, and continues with its state."""

    pipeline: str
    before: str


class StopRequested(Event, frozen=True, kw_only=True):
    """A signal requested the stop; the daemon drains."""

    signal: str


class DaemonStopped(Event, frozen=True, kw_only=True):
    """The daemon has stopped normally. ``seconds``: time since the request."""

    seconds: float
    pending: int


class DrainOverran(Event, frozen=True, kw_only=True):
    """A step did not end within the drain time, so the process exited. The next start continues from the state file."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    seconds: float
    step: str


class ControlUnavailable(Event, frozen=True, kw_only=True):
    """The control socket could not be created: commands that change the state can't reach this daemon."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    socket: str
    reason: str


class ListenerOpened(Event, frozen=True, kw_only=True):
    """The listener for metrics, health and the page is open; ``address`` is its URL, or the path of its Unix socket."""

    address: str


class ListenerUnavailable(Event, frozen=True, kw_only=True):
    """The listener could not be opened, such as because its port is in use. It is tried again; the daemon continues."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    address: str
    reason: str


class ManagerUnreachable(Event, frozen=True, kw_only=True):
    """The service manager's notify socket failed. The daemon continues; the manager may restart it."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    reason: str


class PartFailed(Event, frozen=True, kw_only=True):
    """A part (a source, a lane, a schedule) ended with an unexpected exception and restarts; the others continue.

    ``traceback`` is empty except for the first failure of a series.
    """

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    part: str
    sentence: str
    failures: int
    retry_in_seconds: float
    traceback: str


class PartRecovered(Event, frozen=True, kw_only=True):
    """A part that had failed runs again."""

    part: str


class StartDelayed(Event, frozen=True, kw_only=True):
    """The state file cannot be opened now (such as on a full disk); the daemon waits and retries."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


class StateUnwritable(Event, frozen=True, kw_only=True):
    """A write to the state file failed. Reading pauses; delivery continues with acknowledgements in memory."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


class StateWritable(Event, frozen=True, kw_only=True):
    """The state file can be written again."""


class ConfigurationReloaded(Event, frozen=True, kw_only=True):
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


class ReloadRefused(Event, frozen=True, kw_only=True):
    """The configuration has mistakes or can't be applied; the daemon keeps the one in use."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    by: str
    mistakes: tuple[str, ...]


class KeyUnreadable(Event, frozen=True, kw_only=True):
    """The API key could not be read again after a 401; the old key remains in use."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    sentence: str


class CommandFailed(Event, frozen=True, kw_only=True):
    """A command ended with an unexpected exception, a bug in ingestd."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"

    traceback: str


class TelemetryUnavailable(Event, frozen=True, kw_only=True):
    """The environment requests an export to OpenTelemetry, and the extra ``otel`` is not installed. All else works."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sentence: str


class TelemetryFailed(Event, frozen=True, kw_only=True):
    """The collector does not accept ``signal``; it is dropped and counted. Reading and delivery continue."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    signal: Literal["traces", "logs"]
    sentence: str


class TelemetryResumed(Event, frozen=True, kw_only=True):
    """The collector accepts ``signal`` again."""

    signal: Literal["traces", "logs"]
