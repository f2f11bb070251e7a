"""The connector contract: three methods that every connector has, and three capabilities that it may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import BaseModel

from ingestd.core.claims import FileClaim
from ingestd.core.record import Batch, Cursor, Partition, Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """What the runtime tells a connector about its place.

    ``pipeline`` names the pipeline; ``base`` is the folder of the configuration file, against which relative paths are
    resolved; ``now`` gives seconds since the epoch (a handed-in clock, so that settle times can be tested). ``tell`` puts a
    sentence about the source as a whole into the log, for what its operator should know and no error says.
    """

    pipeline: str
    base: Path
    now: Callable[[], float]
    tell: Callable[[str], None] = field(default=lambda _: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One named check of a source and how it went; ``sentence`` says what was found or what to do."""

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    sentence: str


class Connector(ABC):
    """Knows one kind of system. Subclass it, declare ``Options``, implement `partitions` and `read`.

    ``Options`` is the source's settings without ``connector``; its field descriptions become the documentation and the
    JSON Schema. All methods are synchronous and may block: they run in a thread of a pool, one call at a time for
    each source. An unforeseen exception ends the source's part of the daemon only, which starts again after a wait.
    """

    Options: ClassVar[type[BaseModel]]
    scheduled_only: ClassVar[bool] = False
    """True for a source that can't tell when it changed: ``schedule: on-change`` is then a mistake."""

    def __init__(self, options: Any, context: SourceContext) -> None:
        self.options = options
        self.context = context

    @classmethod
    def claims(cls, options: Any, base: Path) -> Sequence[FileClaim]:  # noqa: ARG003 - most sources are no files
        """The files that a source with these ``Options`` reads, takes away and writes; none if it is no folder or file.

        Two pipelines of which one takes away what the other reads are a mistake of the configuration. Must not open
        anything, and must not raise. ``base``: the configuration's folder. The claims' folders are resolved paths.
        """
        return ()

    @abstractmethod
    def partitions(self) -> Iterable[Partition]:
        """The parts that may have something to read now, in the order in which they shall be read.

        Raises:
            SourceUnavailable: the source is away for now.
            SourceBroken: the source can't be used as configured.
        """

    @abstractmethod
    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """Batches after ``cursor``, the one of the last reading that was made durable to its end (None: never read).

        A snapshot partition that was not touched since ``cursor`` yields nothing at all; one that was touched but holds the
        same content yields one empty batch that says ``unchanged``; one that changed is yielded whole. With ``cursor=None`` it
        is yielded whole in any case.
        An incremental partition yields what came after ``cursor``; each batch's cursor is made durable with it.

        Raises:
            SourceUnavailable: the source went away; what was yielded stays.
            SourceBroken: this partition can't be read as configured.
        """

    def settled(self, partition: Partition, cursor: Cursor, settlement: Settlement) -> None:  # noqa: B027 - most sources do nothing
        """Everything up to ``cursor`` was delivered or parked: archive, acknowledge, forget. Must bear repetition.

        ``settlement`` tells what became of it.

        Raises:
            SettleLater: not yet; it is told again.
        """

    def failed(self, partition: Partition, reason: str) -> None:  # noqa: B027 - most sources have nowhere to put what is broken
        """That the partition can't be read, as ``reason`` says, is on record now: put it aside. Must bear repetition."""

    def again(self) -> None:  # noqa: B027 - a connector that remembers nothing has nothing to forget
        """Somebody asked for records to be mapped again: hand over at the next pass what is thought to be through with, too."""

    def waiting(self) -> float | None:
        """Seconds until something that was seen but is not ready yet (a file that must stand still) may be; None: nothing."""
        return None

    def interrupt(self) -> None:  # noqa: B027 - most readings end soon enough by themselves
        """The runtime stops: end a reading under way soon, by `SourceUnavailable` if it waits. Called from another thread.

        Only `close` is called after it.
        """

    def close(self) -> None:  # noqa: B027 - most connectors hold nothing open
        """Let go of connections and handles."""


@runtime_checkable
class Watches(Protocol):
    """Can tell when there may be something to read. Events can be missed, so the source is looked at every so often anyway."""

    @property
    def rescan_seconds(self) -> float:
        """How long at the most a missed event may go unnoticed."""

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """While the context is open, ``wake`` is called (from any thread) when the source may have changed."""


@runtime_checkable
class Verifies(Protocol):
    """Can check its access before anything runs; `ingestd check` prints the steps."""

    def verify(self) -> Iterable[Step]:
        """Named steps in order, each with its outcome."""


@runtime_checkable
class Explains(Protocol):
    """Can say why something is still waiting. May be asked from any thread, at any time."""

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """A sentence on what is in the way of the partition ``name``.

        None where nothing is: it was read as it is (``cursor`` is of its last reading to the end), it is gone, or the name
        means nothing here.
        """


@runtime_checkable
class Notices(Protocol):
    """Knows something about the source as a whole that its operator should know, though nothing has failed."""

    def notices(self) -> Iterable[str]:
        """Sentences on the source as it was seen last, for `ingestd status`. Called from any thread; must not block."""


@runtime_checkable
class Holds(Protocol):
    """Has partitions that come and go, as files in a folder. What is stored of those that are gone is pruned in time.

    Without this capability every partition is taken to be there for good.
    """

    def holds(self, name: str) -> bool:
        """Whether the source still has the partition ``name``, read or not.

        Raises:
            SourceUnavailable: the source is away, so nothing can be said.
        """


@runtime_checkable
class Locates(Protocol):
    """Has partitions that are files. May be asked from any thread, at any time."""

    def locate(self, path: Path) -> str | None:
        """The name of the partition that an absolute path belongs to, whether there is such a file or not; None: none."""

    def whereabouts(self, name: str, cursor: Cursor) -> str:
        """Where the file is now that was read up to ``cursor``, as the end of a sentence: ``it was archived as …``."""
