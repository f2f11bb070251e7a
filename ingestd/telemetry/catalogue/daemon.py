"""Events of the daemon's lifecycle, parts and configuration."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ingestd.telemetry.event import DebugEvent, ErrorEvent, Event, WarningEvent

Signal: TypeAlias = Literal["traces", "logs"]
"""The kinds of data that are exported to a collector of OpenTelemetry."""


class DaemonReady(Event, frozen=True, kw_only=True):
    """The daemon holds the state file; reading and delivery begin."""

    version: str
    pid: int
    configuration: str
    state: str
    pipelines: int
    pending: int


class PipelineDue(DebugEvent, frozen=True, kw_only=True):
    """The schedule woke a pipeline."""

    pipeline: str


class PipelinePaused(Event, frozen=True, kw_only=True):
    """An operator paused a pipeline: it is not read, and its entries are not sent. ``by``: the account, or the web page."""

    pipeline: str
    by: str


class PipelineResumed(Event, frozen=True, kw_only=True):
    """An operator ended the pause of a pipeline."""

    pipeline: str
    by: str


class PipelineRequested(Event, frozen=True, kw_only=True):
    """An operator requested that the source of a pipeline is read now."""

    pipeline: str
    by: str


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


class DrainOverran(WarningEvent, frozen=True, kw_only=True):
    """A step did not end within the drain time, so the process exited. The next start continues from the state file."""

    seconds: float
    step: str


class ControlUnavailable(WarningEvent, frozen=True, kw_only=True):
    """The control socket could not be created: commands that change the state can't reach this daemon."""

    socket: str
    reason: str


class ListenerOpened(Event, frozen=True, kw_only=True):
    """The listener for metrics, health and the page is open; ``address`` is its URL, or the path of its Unix socket."""

    address: str


class ListenerUnavailable(WarningEvent, frozen=True, kw_only=True):
    """The listener could not be opened, for example because its port is in use. The daemon continues, and tries again."""

    address: str
    reason: str


class ManagerUnreachable(WarningEvent, frozen=True, kw_only=True):
    """Messages to the service manager can't be sent, or it does not read them. The daemon continues; it may be restarted."""

    reason: str


class PartFailed(ErrorEvent, frozen=True, kw_only=True):
    """A part (a source, a lane, a schedule) ended with an unexpected exception and restarts; all other parts continue.

    ``traceback`` is empty except for the first failure of a series.
    """

    part: str
    sentence: str
    failures: int
    retry_in_seconds: float
    traceback: str


class PartRecovered(Event, frozen=True, kw_only=True):
    """A part that had failed runs again."""

    part: str


class StartDelayed(ErrorEvent, frozen=True, kw_only=True):
    """The state file cannot be opened now (such as on a full disk); the daemon waits and retries."""

    sentence: str


class StateUnwritable(ErrorEvent, frozen=True, kw_only=True):
    """A write to the state file failed. Reading pauses; delivery continues with acknowledgements in memory."""

    sentence: str


class StateWritable(Event, frozen=True, kw_only=True):
    """The state file can be written again."""


class ConfigurationReloaded(Event, frozen=True, kw_only=True):
    """The configuration and its secrets were read again, the changes are applied, and waiting lanes retry.

    ``by``: an account or SIGHUP. ``added`` to ``restarted``: names of pipelines. ``unchanged``: the number of other pipelines.
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


class ReloadRefused(ErrorEvent, frozen=True, kw_only=True):
    """The configuration has mistakes or can't be applied; the daemon keeps the configuration in use."""

    by: str
    mistakes: tuple[str, ...]


class KeyUnreadable(ErrorEvent, frozen=True, kw_only=True):
    """The API key could not be read again after a 401; the old key remains in use."""

    sentence: str


class CommandFailed(ErrorEvent, frozen=True, kw_only=True):
    """A command ended with an unexpected exception, a bug in ingestd."""

    traceback: str


class TelemetryUnavailable(WarningEvent, frozen=True, kw_only=True):
    """The environment requests an export to OpenTelemetry, but the extra ``otel`` is missing. Everything else works."""

    sentence: str


class TelemetryFailed(WarningEvent, frozen=True, kw_only=True):
    """The collector does not accept ``signal``, so these items are dropped and counted. Reading and delivery continue."""

    signal: Signal
    sentence: str


class TelemetryResumed(Event, frozen=True, kw_only=True):
    """The collector accepts ``signal`` again."""

    signal: Signal
