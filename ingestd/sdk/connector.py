"""The connector contract: two methods that every connector implements, and optional methods and capabilities."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from ingestd.core.claims import FileClaim
from ingestd.core.errors import RecordUnreadable
from ingestd.core.record import Acknowledgement, Batch, Cursor, Partition
from ingestd.sdk.kept_file import KeptFile, private_folder

CONTRACT = 1
"""The version of the connector contract that this runtime has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """What the runtime gives a connector besides its options.

    ``pipeline`` is the pipeline's name. ``base`` is the folder of the configuration file; relative paths are resolved against
    it. ``now`` returns seconds since the epoch, for times that are shown, stored, or compared with those of files; durations are
    measured with `elapsed`, because the clock may be set. ``log`` writes a sentence about the source as a whole to the log; it is
    for facts that an operator needs and no error reports. ``stopping`` is set when the source ends: every wait of a connector
    ends within 2 seconds after it. ``until``: in a one-shot `ingestd sync`, when a subscription that waits for messages must end
    its reading, by `elapsed`; `math.inf` if only the options limit it. None: the daemon runs.
    """

    pipeline: str
    base: Path
    now: Callable[[], float]
    log: Callable[[str], None] = field(default=lambda _: None)
    cache_folder: Path | None = None
    """The folder of `cache`; None: nothing is cached."""
    kept_folder: Path | None = None
    """The folder of `keep`; None: there is none."""
    unsaved: MutableMapping[str, bytes] | None = None
    """What `keep` holds in memory, because this process must not write the folder; None: it may."""
    steady: Callable[[], float] | None = None
    """What `elapsed` returns; None: ``now``."""
    wake: Callable[[str], None] = field(default=lambda _: None)
    """Have the source of a pipeline of this name be read now; nothing if there is none. From any thread."""
    other_readers: Callable[[str], Collection[str]] = field(default=lambda _: ())
    """Return the names of the other pipelines that read the file at a path, with all links of its folder resolved."""
    stopping: threading.Event = field(default_factory=threading.Event)
    until: float | None = None

    def elapsed(self) -> float:
        """Return seconds that only pass, also while the machine sleeps; only their differences have a meaning."""
        return (self.steady or self.now)()

    def keep(self, name: str) -> KeptFile:
        """Return a small private file for what must not be lost, such as a client id: it survives restarts and is in backups.

        A pipeline that is renamed keeps it. In a process that only looks, such as `ingestd check`, it is read, and what is
        written stays in memory.
        """
        return KeptFile(self.kept_folder, name, unsaved=self.unsaved)

    def cache(self, name: str) -> Path | None:
        """Return the path of a file beside the state file that only saves work; None if the runtime keeps nothing.

        The file exists and only its owner may read it (mode 0600). It may be old or missing after a crash, a restored backup or
        another name of the pipeline: store in it to which cursor it belongs. Open it only in `Connector.read`.

        Raises:
            OSError: the folder or the file can't be created.
        """
        if self.cache_folder is None:
            return None
        with private_folder(self.cache_folder, create=True) as folder:
            os.close(
                os.open(
                    name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder
                )
            )
        return self.cache_folder / name


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionHealth:
    """The state of a connection to a source, for `ingestd status` and the metrics.

    ``sentence``: what an operator should know, without a secret. ``connected_since``: seconds since the epoch; None: not
    connected. ``lag_seconds``: how old the oldest message is that was not read yet; None: unknown. ``dropped``: messages that the
    source could not give to the connector, since the daemon started. ``stays_connected``: False if a connection is open during a
    reading only; then it is not reported that there is none.
    """

    sentence: str
    connected_since: float | None = None
    lag_seconds: float | None = None
    dropped: int = 0
    stays_connected: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of one named check of a source; ``sentence`` states what was found, or what to do."""

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    sentence: str


class Connector(ABC):
    """Reads one kind of system. A subclass declares ``Options`` and implements `partitions` and `read`.

    ``Options`` is the model of the source's settings without ``connector``. Its field descriptions become the documentation and
    the JSON Schema. All methods are synchronous and may block: they run in a thread pool, one call at a time for each
    source. An unexpected exception stops only this source, which starts again after a wait.
    """

    Options: ClassVar[type[BaseModel]]
    contract: ClassVar[int] = CONTRACT
    """The version of this contract that the connector was written for; another one is refused when it is loaded."""
    scheduled_only: ClassVar[bool] = False
    """True if the source cannot report changes; ``schedule: on-change`` is then a configuration error."""
    memory_grows: ClassVar[str] = ""
    """A sentence: why a reading needs more memory if the source is larger. Empty: it does not; `MemoryConformance` tests that."""

    def __init__(self, options: Any, context: SourceContext) -> None:
        self.options = options
        self.context = context

    @classmethod
    def claims(cls, options: Any, base: Path) -> Sequence[FileClaim]:  # noqa: ARG003 - most sources have no files
        """Return the files that a source with these ``Options`` reads; nothing if it has no files.

        A connector that removes files keeps those which `SourceContext.other_readers` returns another pipeline for. Two
        pipelines with equal claims are a configuration error if one of them removes files. Must not open anything and must
        not raise. ``base``: the folder of the configuration file. The folders of the claims are resolved paths.
        """
        return ()

    @classmethod
    def schedule_refusal(cls, options: Any) -> str:  # noqa: ARG003 - most sources can be read at any time
        """Return why a source with these ``Options`` can't have a schedule with times, such as `every`; empty if it can.

        A subscription must stay open: what arrives between two runs would be lost. Must not open anything and must not raise.
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

        A snapshot partition that was not changed since ``cursor`` yields nothing. One that was written again with the same
        content yields one empty batch with ``unchanged``. One that changed, or was never read, is yielded as a whole. Or
        `Batch.partial` batches hold the records that may have changed, and a later reading is whole again.

        An incremental partition yields what follows ``cursor``, or nothing. The cursor of each batch becomes durable with the
        batch.

        The last batch of each reading has `Batch.last`; see `mark_last`. A reading that ends without it counts as interrupted.

        A `RecordUnreadable` between two batches becomes durable with the batch after it. If nothing else follows, yield an
        empty batch: ``pack([], cursor=…)``.

        Raises:
            SourceUnavailable: the source is not reachable any more; batches already yielded are kept.
            SourceBroken: this partition cannot be read as configured.
        """

    def committed(self, partition: Partition, cursor: Cursor) -> None:  # noqa: B027 - most sources do nothing
        """Release what the source keeps up to ``cursor``, such as the messages of a queue: the daemon has stored it.

        Called after each batch of an incremental partition is durable, before the next batch is requested, in the thread that
        reads. The records may not be delivered yet. A call may be missing after a crash, or repeated: `read` gets the durable
        cursor, and releases what is before it. An exception is reported and does not end the reading.
        """

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: B027 - most sources do nothing
        """Acknowledge that everything up to ``cursor`` was delivered or rejected; archive the file, for example.

        Must be idempotent. ``partition`` is as `partitions` returned it. ``acknowledgement`` holds the results.

        Raises:
            AcknowledgeLater: the partition cannot be acknowledged yet; this method is called again.
        """

    def failed(self, partition: Partition, reason: str) -> None:  # noqa: B027 - most sources have no place for broken partitions
        """Handle a partition that cannot be read, after ``reason`` is stored; move the file, for example. Must be idempotent."""

    def reset(self) -> None:  # noqa: B027 - most connectors remember nothing
        """Forget what was read, so that the next pass yields it again; an operator requested a new mapping."""

    def waiting(self) -> float | None:
        """Return the seconds until something that was seen, such as a growing file, may be ready; None: nothing."""
        return None

    def health(self) -> ConnectionHealth | None:
        """Return the state of the connection; None: the source has none that stays open.

        Called from any thread, at any time; must not block.
        """
        return None

    def interrupt(self) -> None:  # noqa: B027 - most readings end soon
        """End a running reading soon, by `SourceUnavailable` if it waits. Called from another thread at shutdown.

        `SourceContext.stopping` is set before.

        Only acknowledgements and `close` are called after it.
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
        """Do what `Connector.acknowledge` does for each partition. Return what it would raise, or None, for each, in order.

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
class SuggestsSetup(Protocol):
    """Capability: knows what an administrator may install for the source; `ingestd database sql` prints it."""

    def setup_sql(self) -> str:
        """Return statements with comments. Calls no server, and shows no password.

        Raises:
            SourceBroken: there are no statements for the configured names.
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


WaitingReason: TypeAlias = Literal["unstable", "not ready", "empty", "unreadable"]
"""Why a file is not read: it may still change, a rule of ``ready`` waits, it has no content, or it can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFile:
    """A file that is not read as it is now; ``sentence`` states why."""

    name: str
    reason: WaitingReason
    sentence: str


@runtime_checkable
class ListsWaiting(Protocol):
    """Capability: has files that wait. Both methods use the last scan: any thread may call them, and they must not block."""

    def count_waiting(self) -> Mapping[WaitingReason, int]:
        """Return the number of waiting files by reason; a reason without files may be absent."""

    def list_waiting(self, limit: int) -> Sequence[WaitingFile]:
        """Return at most ``limit`` waiting files."""


@runtime_checkable
class Notices(Protocol):
    """Capability: reports facts about the source as a whole that its operator needs, although nothing has failed."""

    def notices(self) -> Iterable[str]:
        """Return sentences about the source for `ingestd status`. Called from any thread; must not block."""


@runtime_checkable
class Holds(Protocol):
    """Capability: has partitions that come and go, such as files. Stored data of missing partitions is pruned later.

    Without this capability all partitions are taken as permanent.
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
class Rewinds(Protocol):
    """Capability: can move a cursor back; `ingestd cursor rewind` uses it. No pass runs meanwhile."""

    def rewind(self, cursor: Cursor, to: str) -> Cursor:
        """Return the cursor from which a reading yields what follows ``to``, text of the command line.

        Raises:
            SourceBroken: the cursor can't be moved there; the sentence has the reason.
        """


@runtime_checkable
class Backfills(Protocol):
    """Capability: can read everything again while changes continue to arrive; `ingestd backfill` uses it.

    The position is a part of the cursor. While more is to be read, `Connector.waiting` returns the seconds until then.
    """

    def begin_backfill(self, cursor: Cursor) -> Cursor:
        """Return the cursor with which a backfill begins. No pass runs meanwhile.

        Raises:
            SourceBroken: a backfill is not possible; the sentence has the reason.
        """

    def cancel_backfill(self, cursor: Cursor) -> Cursor:
        """Return the cursor without its backfill. No pass runs meanwhile.

        Raises:
            SourceBroken: no backfill runs.
        """

    def pause_backfill(self, paused: bool) -> None:
        """Have backfills wait because a run is held, or continue. Called before each reading of a partition."""


@runtime_checkable
class Resumes(Protocol):
    """Capability: stops after a refusal, such as of a password, until an operator or `ingestd reload` requests an attempt."""

    def resume(self) -> None:
        """Try again at the next pass. Called from any thread; must not block."""


@runtime_checkable
class ReadsSamples(Protocol):
    """Capability: reads any file with the source's format; `ingestd test` uses it."""

    def read_sample(self, path: Path) -> Iterator[Batch | RecordUnreadable]:
        """Yield the whole file at ``path``, whatever the source itself holds. Nothing is moved or remembered.

        Raises:
            SourceBroken: the file can't be read in the source's format.
        """


@runtime_checkable
class ReadsCopies(Protocol):
    """Capability: keeps a copy of what was read, such as an archived file; `ingestd trace --steps` reads it."""

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
