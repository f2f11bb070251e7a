"""Events of drift checks. ``sink`` is the sink's configured address."""

from __future__ import annotations

from ingestd.telemetry.event import Event, WarningEvent


class SinkAsDelivered(Event, frozen=True, kw_only=True):
    """A sink was read back and contains the delivered entries."""

    sink: str
    entries: int


class DriftFound(WarningEvent, frozen=True, kw_only=True):
    """Other programs or people added, changed or removed keys of a sink; `ingestd drift` lists them.

    ``mode``: the configured reaction.
    """

    sink: str
    added: int
    changed: int
    removed: int
    mode: str


class DriftRepaired(Event, frozen=True, kw_only=True):
    """The differing keys of a sink are sent again, or removed again if configured."""

    sink: str
    entries: int


class DriftAdopted(WarningEvent, frozen=True, kw_only=True):
    """The mirror has adopted the service's values of differing keys, until their records are mapped again."""

    sink: str
    entries: int


class DriftCheckFailed(WarningEvent, frozen=True, kw_only=True):
    """A sink could not be read back completely; the findings of the earlier check remain."""

    sink: str
    sentence: str


class EntriesUnexplained(Event, frozen=True, kw_only=True):
    """A sink contains entries that no source explains; `ingestd drift` lists them."""

    sink: str
    entries: int


class UnexplainedRemoved(WarningEvent, frozen=True, kw_only=True):
    """Unexplained entries are removed from a sink because of the setting ``unexplained`` of its pipelines."""

    sink: str
    entries: int


class StateDoubted(WarningEvent, frozen=True, kw_only=True):
    """The state file is not the state file that was used last.

    Each of its sinks is compared with the service and repaired after its sources have been read.
    """

    sentence: str
    sinks: int


class EarlierStateMissing(WarningEvent, frozen=True, kw_only=True):
    """The state file is new, but an earlier state file wrote sinks; their entries are read into the new file."""

    sentence: str
