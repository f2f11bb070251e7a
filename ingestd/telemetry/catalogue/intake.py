"""What happens between a source and the mirror."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ingestd.telemetry.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead(Event):
    """A partition was read to its end and everything that came from it is in the mirror."""

    pipeline: str
    partition: str
    records: int
    created: int
    updated: int
    unchanged: int
    removed: int
    rejected: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionUnchanged(Event):
    """A partition was read to its end and held nothing new; a database that is asked every minute says so every minute."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "debug"
    pipeline: str
    partition: str
    records: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsParked(Event):
    """Some records of a partition can't become entries; the sentence tells the first one's position and reason."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"
    pipeline: str
    partition: str
    records: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionParked(Event):
    """A partition can't be read as configured; it is tried again when it or the configuration changes."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"
    pipeline: str
    partition: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReadAgain(Event):
    """Two records make the same key, so the differences can't tell which one counts: the partition is read whole."""

    pipeline: str
    partition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettled(Event):
    """Everything from a partition was delivered or parked, and the source was told so."""

    pipeline: str
    partition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlingFailed(Event):
    """The source could not be told that a partition is settled (a file could not be moved, say); tried again."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"
    pipeline: str
    partition: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentKnown(Event):
    """A partition has the content that it, or another one of its pipeline, was read with before; the sentence says which."""

    pipeline: str
    partition: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNotice(Event):
    """A source has something to say about itself, such as how its folder is watched."""

    pipeline: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAway(Event):
    """A source can't be reached; it is tried again after a while."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"
    pipeline: str
    sentence: str
    retry_in_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBack(Event):
    """A source that was away can be read again."""

    pipeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStopped(Event):
    """A source can't be used as configured; it is tried again with the next event, schedule or restart."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"
    pipeline: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakePaused(Event):
    """The state file cannot be written; all pipelines wait, one tries from time to time, and delivery goes on.

    ``pipeline``: the one that found out.
    """

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"
    pipeline: str
    sentence: str
    retry_in_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeResumed(Event):
    """The state file can be written again; all pipelines read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailed(Event):
    """A call of a source ended with an unforeseen exception outside of its supervised part; other sources go on."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "error"
    pipeline: str
    sentence: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSlow(Event):
    """A call of a source has taken so long that the others get a further thread; it may hang."""

    level: ClassVar[Literal["debug", "info", "warning", "error"]] = "warning"
    pipeline: str
    seconds: float
    sentence: str
