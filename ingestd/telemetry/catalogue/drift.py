"""What happens when sinks are read back. ``sink`` is the sink's address as configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkAsDelivered(Event):
    """A sink was read back and holds what was delivered to it."""

    sink: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFound(Event):
    """Somebody else added, changed or removed keys of a sink; `ingestd drift` lists them. ``mode``: what is done about it."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    added: int
    changed: int
    removed: int
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRepaired(Event):
    """The keys of a sink that differed are sent again, or removed again where the configuration says so."""

    sink: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftAdopted(Event):
    """The mirror has taken the service's values of keys that differed; they stay until their records are mapped again."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftCheckFailed(Event):
    """A sink could not be read back to its end; what an earlier check had found stays."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesUnexplained(Event):
    """A sink was read back and holds entries that no source explains; `ingestd drift` lists them."""

    sink: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnexplainedRemoved(Event):
    """Entries that no source explains are removed from a sink, as the setting ``unexplained`` of its pipelines says."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sink: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDoubted(Event):
    """The state file is not the one that was last used here.

    Each sink that it knows is compared with the service and repaired once its sources were read.
    """

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sentence: str
    sinks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierStateMissing(Event):
    """The state file is new, and a state file before it wrote sinks from here: what they hold is read into the new one."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"

    sentence: str
