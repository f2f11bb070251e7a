"""The connector contract: two methods that every connector implements, and optional methods and capabilities.

The default of an optional method has no effect, such as an empty list of notices. A capability changes what the runtime does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from ingestd.core.claims import FileClaim
from ingestd.core.errors import RecordUnreadable
from ingestd.core.record import Acknowledgement, Batch, Cursor, Partition
from ingestd.sdk.source_context import SourceContext

CONTRACT = 1
"""The version of the connector contract that this runtime has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionHealth:
    """The state of a connection to a source, for `ingestd status` and the metrics.

    ``sentence``: what an operator should know, without a secret. ``connected_since``: seconds since the epoch; None: not
    connected. ``lag_seconds``: the age of the oldest unread message; None: unknown. ``dropped``: messages that the source could
    not give to the connector, since the daemon started. ``stays_connected``: False if a connection is open during a reading
    only; then a missing connection is not reported.
    """

    sentence: str
    connected_since: float | None = None
    lag_seconds: float | None = None
    dropped: int = 0
    stays_connected: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of one named check of a source; ``sentence`` states what was found, or what to do.

    ``fields``: a sample of the fields that its records have now. The mapping is compared with them.
    """

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    sentence: str
    fields: tuple[str, ...] = ()


WaitingReason: TypeAlias = Literal["unstable", "not ready", "empty", "unreadable"]
"""Why a file is not read: it may still change, a rule of ``ready`` waits, it has no content, or it can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    """A file that is not read in its present state; ``sentence`` states why."""

    name: str
    reason: WaitingReason
    sentence: str


CursorMove: TypeAlias = Literal["rewind", "backfill", "cancel"]
"""The moves of `Connector.move_cursor`: go back, begin a backfill, or cancel it."""


class Connector(ABC):
    """Reads one kind of system. A subclass declares ``Options`` and implements `partitions` and `read`.

    ``Options`` is the model of the source's settings without ``connector``. Its field descriptions become the documentation and
    the JSON Schema. All methods are synchronous and may block: they run in a thread pool, one call at a time for each
    source. An unexpected exception stops only this source, which starts again after a wait.
    """

    Options: ClassVar[type[BaseModel]]
    contract: ClassVar[int] = CONTRACT
    """The version of this contract that the connector was written for; other versions are refused when it is loaded."""
    scheduled_only: ClassVar[bool] = False
    """True if the source cannot report changes; ``schedule: on-change`` is then a configuration error."""
    confirms_delivery: ClassVar[bool] = False
    """True if `acknowledge` only confirms to a sender that its data was delivered. Otherwise the source may then lack the
    records that were read, so with a standby `acknowledge` waits until the state file was shipped."""
    memory_grows: ClassVar[str] = ""
    """A sentence: why a reading needs more memory if the source is larger. Empty: a reading needs no more memory;
    `MemoryConformance` tests that."""

    def __init__(self, options: Any, context: SourceContext) -> None:
        self.options = options
        self.context = context

    @classmethod
    def claims(cls, options: Any, base: Path) -> Sequence[FileClaim]:  # noqa: ARG003 - most sources have no files
        """Return the files that a source with these ``Options`` reads; nothing if it has no files.

        A connector that removes files keeps files for which `SourceContext.other_readers` returns another pipeline. Two
        pipelines with equal claims are a configuration error if one of them removes files. Must not open anything and must not
        raise. ``base``: the folder of the configuration file. The folders of the claims are resolved paths.
        """
        return ()

    @classmethod
    def schedule_refusal(cls, options: Any) -> str:  # noqa: ARG003 - most sources can be read at any time
        """Return why a source with these ``Options`` can't have a schedule with times, such as `every`; empty if it can.

        A subscription must stay open: messages that arrive between two runs would be lost. Must not open anything and must not
        raise.
        """
        return ""

    @abstractmethod
    def partitions(self) -> Iterable[Partition]:
        """Return the partitions that may have something to read now, in the order in which they are read.

        Raises:
            SourceUnavailable: the source is not reachable now.
            SourceBroken: the source cannot be used as configured.
        """

    @abstractmethod
    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch | RecordUnreadable]:
        """Yield the batches after ``cursor``, the durable end of the last complete reading (None: never read).

        A snapshot partition that was not changed since ``cursor`` yields nothing. If it was written again with the same
        content, it yields one empty batch with ``unchanged``. If it changed, or was never read, it is yielded as a whole.
        Alternatively, `Batch.partial` batches hold the records that may have changed, and a later reading is whole again.

        An incremental partition yields the records after ``cursor``, or nothing. The cursor of each batch becomes durable with
        the batch.

        The last batch of each reading has `Batch.last`; see `mark_last`. A reading that ends without it counts as interrupted.

        A `RecordUnreadable` between two batches becomes durable with the batch after it. If nothing else follows, yield an
        empty batch: ``pack([], cursor=…)``.

        Raises:
            SourceUnavailable: the source is not reachable any more; batches already yielded are kept.
            SourceBroken: this partition cannot be read as configured.
        """

    def batch_rejected(self, partition: Partition, reason: str) -> None:  # noqa: B027 - most sources have no sender to inform
        """Inform the sender of a batch before its `committed`: all of its records are rejected for this reason."""

    def committed(self, partition: Partition, cursor: Cursor) -> None:  # noqa: B027 - most sources do nothing
        """Release data that the source keeps up to ``cursor``, such as the messages of a queue: the daemon has stored it.

        Called after each batch of an incremental partition is durable, before the next batch is requested, in the thread that
        reads. The records may not be delivered yet. A call may be missing after a crash, or repeated: `read` gets the durable
        cursor, and releases data before it. An exception is reported and does not end the reading.
        """

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: B027 - most sources do nothing
        """Acknowledge that everything up to ``cursor`` was delivered or rejected; archive the file, for example.

        Must be idempotent. ``partition`` is the value that `partitions` returned. ``acknowledgement`` holds the results.

        Raises:
            AcknowledgeLater: the partition cannot be acknowledged yet; this method is called again.
        """

    def failed(self, partition: Partition, reason: str) -> None:  # noqa: B027 - most sources have no place for broken partitions
        """Handle a partition that cannot be read, after ``reason`` is stored; move the file, for example. Must be idempotent."""

    @property
    def moves_failed(self) -> bool:
        """Whether `failed` may move a partition, so that a missing partition does not prove that a person has removed it."""
        return False

    def reset(self) -> None:  # noqa: B027 - most connectors remember nothing
        """Forget which records were read, so that the next pass yields them again; an operator requested a new mapping."""

    def waiting(self) -> float | None:
        """Return the seconds until something that was seen, such as a growing file, may be ready; None: nothing."""
        return None

    def count_waiting(self) -> Mapping[WaitingReason, int]:
        """Return the number of files that wait by reason, by the last scan; a reason without files may be absent.

        This method and `list_waiting` are called from any thread and must not block.
        """
        return {}

    def list_waiting(self, limit: int) -> Sequence[WaitingFile]:  # noqa: ARG002 - most sources have no files
        """Return at most ``limit`` files that wait."""
        return ()

    def move_cursor(self, cursor: Cursor, move: CursorMove, to: str) -> Cursor | None:  # noqa: ARG002 - most have no such moves
        """Return the cursor after a move that an operator requests; None: the source has no such move. No pass runs meanwhile.

        ``rewind``, of `ingestd cursor rewind`: a reading yields what follows ``to``, text of the command line. ``backfill``, of
        `ingestd backfill`: everything is read again while changes continue to arrive. Its position is a part of the cursor, and
        `waiting` returns the seconds until more is to be read. ``cancel``: the cursor is without its backfill.

        Raises:
            SourceBroken: the cursor can't be moved to this position; the sentence has the reason.
        """
        return None

    def pause_backfill(self, paused: bool) -> None:  # noqa: B027 - most sources have no backfill
        """Make backfills wait because a run is held, or let them continue. Called before each reading of a partition."""

    def setup_sql(self) -> str:
        """Return statements with comments that an administrator may execute; `ingestd database sql` prints them. Empty: none.

        Calls no server, and shows no password.

        Raises:
            SourceBroken: there are no statements for the configured names.
        """
        return ""

    def health(self) -> ConnectionHealth | None:
        """Return the state of the connection; None: no connection stays open.

        Called from any thread, at any time; must not block.
        """
        return None

    def notices(self) -> Iterable[str]:
        """Return what an operator should know although nothing failed, as sentences. Called from any thread; must not block."""
        return ()

    def resume(self) -> None:  # noqa: B027 - most sources do not stop
        """Try again at the next pass, after a refusal such as of a password. Called from any thread; must not block."""

    def interrupt(self) -> None:  # noqa: B027 - most readings end soon
        """End a running reading soon, by `SourceUnavailable` if it waits. Called from another thread at shutdown.

        `SourceContext.stopping` is set before. Only acknowledgements and `close` are called after it.
        """

    def close(self) -> None:  # noqa: B027 - most connectors hold nothing open
        """Close connections and handles."""


@runtime_checkable
class Watches(Protocol):
    """Capability: reports changes. Events can be missed, so the runtime also scans the source periodically."""

    @property
    def rescan_seconds(self) -> float:
        """The interval of the scans, in seconds: the longest time that a missed event goes unnoticed."""

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake``, from any thread, when the source may have changed, while the context is open."""


@runtime_checkable
class AcknowledgesTogether(Protocol):
    """Capability: acknowledges several partitions at once faster than one after the other."""

    def acknowledge_together(
        self, partitions: Sequence[tuple[Partition, Cursor, Acknowledgement]]
    ) -> Sequence[Exception | None]:
        """Do what `Connector.acknowledge` does for each partition.

        Return the exception that it would raise, or None, for each partition, in order.

        After an unexpected exception, `Connector.acknowledge` is called for each.
        """


@runtime_checkable
class Listens(Protocol):
    """Capability: reports changes between the runs of the pipeline's schedule, which remains."""

    def listen(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake``, from any thread, when the source may have changed, while the context is open.

        Neither end of the context may wait for the source. Does nothing if the options do not request it.
        """


@runtime_checkable
class Verifies(Protocol):
    """Capability: checks its access before anything runs; `ingestd check` prints the steps."""

    def verify(self) -> Iterable[Step]:
        """Return the results of named checks, in order."""


@runtime_checkable
class Explains(Protocol):
    """Capability: explains why a partition is not read yet. Called from any thread, at any time."""

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Return a sentence that states why the partition ``name`` is not read yet.

        None if nothing prevents it: the partition was read as it is (``cursor`` is from its last complete reading), does not
        exist any more, or is unknown.
        """


@runtime_checkable
class Holds(Protocol):
    """Capability: has partitions that come and go, such as files; data of missing partitions is pruned.

    Without this capability, all partitions are permanent.
    """

    def holds(self, name: str) -> bool:
        """Return whether the source still has the partition ``name``, read or not.

        Raises:
            SourceUnavailable: the source is not reachable now.
        """


@runtime_checkable
class Locates(Protocol):
    """Capability: has partitions that are files. Called from any thread, at any time."""

    def locate(self, path: Path) -> str | None:
        """Return the partition's name for an absolute path, whether the file exists or not; None: no partition."""

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """Return where the file that was read up to ``cursor`` is now, as the end of a sentence: ``it was archived as …``."""


@runtime_checkable
class ReadsSamples(Protocol):
    """Capability: reads any file with the source's format; `ingestd test` uses it."""

    def read_sample(self, path: Path) -> Iterator[Batch | RecordUnreadable]:
        """Yield the whole file at ``path``, whatever the source itself holds. Nothing is moved or remembered.

        Raises:
            SourceBroken: the file can't be read in the source's format.
        """


@runtime_checkable
class KnowsKey(Protocol):
    """Capability: knows which fields identify a record; `ingestd init` proposes them as the key."""

    def primary_key(self) -> Sequence[str]:
        """Return the fields that identify a record, in their order; empty if the source does not say so.

        Raises:
            SourceUnavailable, SourceBroken: the source can't be asked.
        """


@runtime_checkable
class ReadsCopies(Protocol):
    """Capability: keeps a copy of the data that was read, such as an archived file; `ingestd trace --steps` reads it."""

    def read_copy(self, name: str, facts: Mapping[str, str]) -> Iterator[Batch | RecordUnreadable]:
        """Yield the partition ``name`` as it was read with these ``facts``; nothing if there is no copy. Nothing is moved.

        Raises:
            SourceUnavailable, SourceBroken: the copy can't be read.
        """


LoadSections: TypeAlias = Callable[[], Mapping[bytes, int]]
"""Returns known sections: the number of records by digest."""


@runtime_checkable
class ReadsSections(Protocol):
    """Capability: recognises the unchanged sections of a snapshot partition, and does not read their records again.

    The runtime calls `read_sections` in the place of `Connector.read` if it can use sections. They are for large partitions.
    """

    def read_sections(
        self, partition: Partition, cursor: Cursor | None, known: LoadSections
    ) -> Iterator[Batch | RecordUnreadable]:
        """Yield what `Connector.read` yields, without the records of known sections; see `Batch.sections`.

        ``known`` loads the sections of the last complete reading, which may be none. All records of a known section were
        readable. Call it once, before the first batch, and only if records are read. The digest covers everything that decides
        which records a section has. A reading without sections is complete.
        """
