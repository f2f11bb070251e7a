"""The connector contract: two methods that every connector implements, and optional methods and capabilities.

By default, an optional method has no effect and returns an empty result. A capability changes what the runtime does.
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
"""The version of the connector contract that this runtime supports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionHealth:
    """The state of a connection to a source, for `ingestd status` and the metrics.

    ``sentence``: the state for an operator; it contains no secret. ``connected_since``: seconds since the epoch; None: not
    connected. ``lag_seconds``: the age of the oldest unread message; None: unknown. ``dropped``: the number of lost messages
    since the daemon started. ``stays_connected``: False if the connection is open only during a reading; then a missing
    connection is not reported.
    """

    sentence: str
    connected_since: float | None = None
    lag_seconds: float | None = None
    dropped: int = 0
    stays_connected: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of one named check of a source; ``sentence`` states what was found, or what to do.

    ``fields``: some fields of the source's present records. The mapping is compared with these fields.
    """

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    sentence: str
    fields: tuple[str, ...] = ()


WaitingReason: TypeAlias = Literal["unstable", "not ready", "empty", "unreadable"]
"""Why a file is not read: it may still change, a rule of ``ready`` is not met, the file is empty, or it can't be read."""


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
    """The version of this contract that the connector was written for. A connector with another version is not loaded."""
    scheduled_only: ClassVar[bool] = False
    """True if the source cannot report changes; ``schedule: on-change`` is then a configuration error."""
    confirms_delivery: ClassVar[bool] = False
    """True if `acknowledge` only confirms to a sender that its data was delivered. If False, `acknowledge` may remove records
    from the source. So, with a standby, `acknowledge` is called only after the state file was shipped."""
    memory_grows: ClassVar[str] = ""
    """A sentence that states why a reading of a larger source needs more memory. Empty: the memory does not
    depend on the size of the source, which `MemoryConformance` tests."""

    def __init__(self, options: Any, context: SourceContext) -> None:
        self.options = options
        self.context = context

    @classmethod
    def claims(cls, options: Any, base: Path) -> Sequence[FileClaim]:  # noqa: ARG003 - most sources have no files
        """Return claims on the files that a source with these ``Options`` reads; empty if the source has no files.

        A connector that removes files must keep a file if `SourceContext.other_readers` returns another pipeline for it. Two
        pipelines with equal claims are a configuration error if one of the pipelines removes files. This method must not open
        anything and must not raise. ``base``: the folder of the configuration file. The claims' folders must be resolved paths.
        """
        return ()

    @classmethod
    def schedule_refusal(cls, options: Any) -> str:  # noqa: ARG003 - most sources can be read at any time
        """Return why a source with these ``Options`` can't have a schedule with times, such as `every`; empty if it can.

        For example, a subscription must stay open, because it would lose the messages between two runs. This method must not
        open anything and must not raise.
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
        """Yield the batches after ``cursor``, the last durable cursor of the partition (None: never read).

        For a snapshot partition, yield nothing if it did not change since ``cursor``. If it was written again with the same
        content, yield one empty batch with ``unchanged``. If it changed, or was never read, yield all of its records. Instead,
        batches with `Batch.partial` have only the records that may have changed; a later reading is complete again.

        For an incremental partition, yield the records after ``cursor``. Each batch's cursor becomes durable with the batch.

        The last batch of each reading has `Batch.last`; see `mark_last`. A reading without such a batch counts as interrupted.

        A `RecordUnreadable` becomes durable with the batch that follows it. If no batch follows, yield an empty batch after it:
        ``pack([], cursor=…)``.

        Raises:
            SourceUnavailable: the source is no longer reachable; batches that were already yielded are kept.
            SourceBroken: this partition cannot be read as configured.
        """

    @property
    def record_settings(self) -> Mapping[str, Any]:
        """The settings that decide which records the same data yields, such as a file format; values as in JSON.

        If they change, every partition that is replayable is read again from its start. Return a mapping without secrets. A
        setting that is not configured must be absent, so that a new setting of a later version causes no reading.

        Raises:
            SourceUnavailable: the settings can't be determined now. Nothing is read.
        """
        return {}

    def batch_rejected(self, partition: Partition, reason: str) -> None:  # noqa: B027 - most sources have no sender to inform
        """Inform the sender of a batch that all records of the batch are rejected because of ``reason``, before `committed`."""

    def committed(self, partition: Partition, cursor: Cursor) -> None:  # noqa: B027 - most sources do nothing
        """Release the source's data up to ``cursor``, such as messages of a queue, because the daemon has stored it.

        Called in the reading thread when a batch of an incremental partition is durable, before the next batch is requested.
        Records of the batch may still be undelivered. After a crash, a call may be missing or repeated. So `read` must also
        release the data up to the durable cursor that it gets. An exception is reported and does not end the reading.
        """

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: B027 - most sources do nothing
        """Acknowledge that everything up to ``cursor`` was delivered or rejected; archive the file, for example.

        This method must be idempotent. ``partition`` is the value that `partitions` returned.

        Raises:
            AcknowledgeLater: the partition cannot be acknowledged yet; this method is called again.
        """

    def failed(self, partition: Partition, reason: str) -> None:  # noqa: B027 - most sources have no place for broken partitions
        """Handle a partition that can't be read, after ``reason`` is stored; move the file, for example. Must be idempotent."""

    @property
    def moves_failed(self) -> bool:
        """True if `failed` may move a partition. Then a missing partition does not prove that a person removed it."""
        return False

    def reset(self) -> None:  # noqa: B027 - most connectors remember nothing
        """Forget which records were read. The next pass must yield all records again, because they must be mapped again."""

    def waiting(self) -> float | None:
        """Return the seconds until data that is not ready, such as a growing file, may be ready; None: all data is ready."""
        return None

    def count_waiting(self) -> Mapping[WaitingReason, int]:
        """Return, by reason, the number of files that were not read at the last scan. A reason without files may be absent.

        This method and `list_waiting` are called from any thread and must not block.
        """
        return {}

    def list_waiting(self, limit: int) -> Sequence[WaitingFile]:  # noqa: ARG002 - most sources have no files
        """Return at most ``limit`` of the files that `count_waiting` counts."""
        return ()

    def move_cursor(self, cursor: Cursor, move: CursorMove, to: str) -> Cursor | None:  # noqa: ARG002 - most have no such moves
        """Return the cursor after a move that an operator requests; None: the source has no such move. No pass runs meanwhile.

        ``rewind`` (`ingestd cursor rewind`): the next reading begins after ``to``, a text from the command line. ``backfill``
        (`ingestd backfill`): everything is read again while changes continue to arrive. The progress of the backfill is a part
        of the cursor, and `waiting` returns the seconds until its next reading. ``cancel``: the backfill ends.

        Raises:
            SourceBroken: this move is not possible; the sentence states why.
        """
        return None

    def pause_backfill(self, paused: bool) -> None:  # noqa: B027 - most sources have no backfill
        """Pause backfills because a run is held, or continue them. Called before each reading of a partition."""

    def setup_sql(self) -> str:
        """Return commented SQL that an administrator may execute; `ingestd database sql` prints it. Empty: nothing to execute.

        This method connects to no server. The SQL contains no password.

        Raises:
            SourceBroken: a configured name can't be written in the SQL.
        """
        return ""

    def health(self) -> ConnectionHealth | None:
        """Return the state of the connection; None: no connection stays open.

        Called from any thread, at any time; must not block.
        """
        return None

    def notices(self) -> Iterable[str]:
        """Return sentences that an operator should read although nothing failed. Called from any thread; must not block."""
        return ()

    def resume(self) -> None:  # noqa: B027 - most sources do not stop
        """Try again at the next pass after a refusal, for example of a password. Called from any thread; must not block."""

    def interrupt(self) -> None:  # noqa: B027 - most readings end soon
        """End a running reading soon. A waiting reading must raise `SourceUnavailable`. Called from another thread at shutdown.

        `SourceContext.stopping` is set before this call. Only acknowledgements and `close` are called afterwards.
        """

    def close(self) -> None:  # noqa: B027 - most connectors hold nothing open
        """Close connections and handles."""


@runtime_checkable
class Watches(Protocol):
    """Capability: reports changes. Events can be missed, so the runtime also scans the source periodically."""

    @property
    def rescan_seconds(self) -> float:
        """The interval of the scans, in seconds. If the event of a change was missed, the next scan finds the change."""

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake``, from any thread, when the source may have changed, while the context is open."""


@runtime_checkable
class AcknowledgesTogether(Protocol):
    """Capability: acknowledges several partitions at once faster than one after the other."""

    def acknowledge_together(
        self, partitions: Sequence[tuple[Partition, Cursor, Acknowledgement]]
    ) -> Sequence[Exception | None]:
        """Acknowledge each partition as `Connector.acknowledge` does. Return the exception of each partition, or None.

        If this method raises, `Connector.acknowledge` is called for each partition.
        """


@runtime_checkable
class Listens(Protocol):
    """Capability: reports changes in addition to the pipeline's schedule, which continues to apply."""

    def listen(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake``, from any thread, when the source may have changed, while the context is open.

        Opening or closing the context must not wait for the source. If the options do not request this, do nothing.
        """


@runtime_checkable
class Verifies(Protocol):
    """Capability: checks the access to the source before anything runs; `ingestd check` prints the steps."""

    def verify(self) -> Iterable[Step]:
        """Return the results of named checks, in order."""


@runtime_checkable
class Explains(Protocol):
    """Capability: explains why a partition is not read yet. Called from any thread, at any time."""

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Return a sentence that states why the partition ``name`` is not read yet.

        None: the partition was read in its present state, no longer exists, or is unknown. ``cursor``: the cursor of its last
        complete reading.
        """


@runtime_checkable
class Holds(Protocol):
    """Capability: has partitions that can disappear, such as files. The stored data of missing partitions is pruned.

    Without this capability, all partitions are permanent.
    """

    def holds(self, name: str) -> bool:
        """Return whether the source still has the partition ``name``, even if it was never read.

        Raises:
            SourceUnavailable: the source is not reachable now.
        """


@runtime_checkable
class Locates(Protocol):
    """Capability: has partitions that are files. Called from any thread, at any time."""

    def locate(self, path: Path) -> str | None:
        """Return the name of the partition for this absolute path, also if the file is missing; None if there is none."""

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """Return where a file with the last cursor ``cursor`` is now, as the end of a sentence: ``it was archived as …``."""


@runtime_checkable
class ReadsSamples(Protocol):
    """Capability: reads any file with the source's format; `ingestd test` uses it."""

    def read_sample(self, path: Path) -> Iterator[Batch | RecordUnreadable]:
        """Yield all records of the file at ``path``, which need not belong to the source. Nothing is moved or remembered.

        Raises:
            SourceBroken: the file can't be read in the source's format.
        """


@runtime_checkable
class KnowsKey(Protocol):
    """Capability: knows which fields identify a record; `ingestd init` proposes them as the key."""

    def primary_key(self) -> Sequence[str]:
        """Return the fields that identify a record, in the order of the key; empty if the source declares no key.

        Raises:
            SourceUnavailable, SourceBroken: the source can't be queried.
        """


@runtime_checkable
class ReadsCopies(Protocol):
    """Capability: keeps a copy of the data that was read, such as an archived file; `ingestd trace --steps` reads it."""

    def read_copy(self, name: str, facts: Mapping[str, str]) -> Iterator[Batch | RecordUnreadable]:
        """Yield the records of the copy of the partition ``name`` that was read with these ``facts``, if there is a copy.

        This method moves nothing.

        Raises:
            SourceUnavailable, SourceBroken: the copy can't be read.
        """


LoadSections: TypeAlias = Callable[[], Mapping[bytes, int]]
"""Returns the number of records of each known section, by the section's digest."""


@runtime_checkable
class ReadsSections(Protocol):
    """Capability: recognises the unchanged sections of a snapshot partition, and does not read their records again.

    The runtime calls `read_sections` instead of `Connector.read` if it can use sections. Sections are for large partitions.
    """

    def read_sections(
        self, partition: Partition, cursor: Cursor | None, known: LoadSections
    ) -> Iterator[Batch | RecordUnreadable]:
        """Yield what `Connector.read` yields, without the records of known sections; see `Batch.sections`.

        ``known`` loads the sections of the last complete reading; the result may be empty. All records of a known section were
        readable. Call ``known`` once, before the first batch, and only if records are read. A section's digest must cover
        everything that determines its records. If no batch has sections, the reading must yield all records.
        """
