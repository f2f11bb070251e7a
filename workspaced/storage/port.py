"""The seam between the slices and a database.

A slice's store is functions of a `ReadTransaction` or a `Transaction` and SQL by name; it knows neither threads nor drivers.
Statements use ``:name`` parameters, except for `Transaction.load`. A row is a tuple in the statement's own column order.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, TypeVar

from workspaced.core.problems import UnavailableProblem

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Mapping[str, object]

BRIEF_READERS = 2
"""How many questions of `Store.read_brief` are answered at once."""
STREAM_THREADS = 4
"""How many streams read from the database at once; the others wait for their next rows."""


class ReadTransaction(Protocol):
    """One consistent view of the database."""

    def one(self, statement: str, values: Values = ..., /) -> Row | None:
        """The first row, if there is one."""

    def all(self, statement: str, values: Values = ..., /) -> list[Row]:
        """Every row."""

    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Every row, at most ``size`` at a time."""


class Transaction(ReadTransaction, Protocol):
    """What a piece of work may do; all of it becomes durable together, or nothing does."""

    def run(self, statement: str, values: Values = ..., /) -> int:
        """Do it; how many rows it changed."""

    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows: ``statement`` ends with VALUES, and each row has as many values as it names columns."""

    def defer(self, statement: str, row: Row, /) -> None:
        """As `load`, of one row, at the end of the transaction: rows of all who share it go in together.

        For what is only appended and nobody reads back within the transaction. Undone with the rest.
        """

    def notify(self, channel: str, /) -> None:
        """Wake those who `Store.listen` to the channel, once this is durable; if it is undone they may be woken in vain."""

    def nested(self) -> AbstractContextManager[None]:
        """What happens inside is undone, and only that, when the block raises."""


class Store(Protocol):
    """A database in use by one process."""

    async def read(self, question: Callable[[ReadTransaction], T]) -> T:
        """Ask within one consistent view.

        Raises:
            UnavailableProblem: the database is busy or can't be reached.
        """

    async def read_brief(self, question: Callable[[ReadTransaction], T]) -> T:
        """As `read`, for a question about a few rows that indexes find: it never waits for the questions of `read`.

        It has connections and threads of its own, so that callers are authenticated however many lists are being read.

        Raises:
            UnavailableProblem: the database is busy or can't be reached.
        """

    def stream(self, question: Callable[[ReadTransaction], Iterator[T]]) -> AsyncGenerator[T, None]:
        """What the question yields, within one consistent view that is held until the iterator ends or is closed."""

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """Do a piece of work; when this returns, it survives loss of power.

        Work of several callers may share a transaction; what one raises undoes its own part only and is raised to its
        own caller. ``weight`` is roughly the number of rows. The work runs on another thread and must not block; it may be
        run anew after what it did was undone, so only what it returns may leave it.

        Raises:
            UnavailableProblem: the database is busy, full or can't be reached; nothing was changed.
        """

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """Have ``wake`` called on this loop after each commit that notifies the channel.

        Heard is at least this process; who must not miss what others commit looks for himself from time to time.
        """

    async def check(self) -> None:
        """Whether reading, writing and the schema are in order (readiness).

        Raises:
            UnavailableProblem: they are not; the sentence says what.
        """


CommitObserver: TypeAlias = Callable[[int, float], None]
"""Told of each commit: of how many callers, and seconds from the first statement to durable. On any thread."""


class StoreOfProcess(Store, Protocol):
    """A store that somebody starts once and stops once."""

    async def start(self) -> None:
        """Begin to take work.

        Raises:
            StorageUnusable: it never will.
        """

    async def stop(self) -> None:
        """Finish what was handed in, then let go of the database."""


class StorageUnusable(Exception):
    """The service can't start on this data: not writable, damaged, or written by a newer program."""


class PasswordRefused(UnavailableProblem):
    """The database's server wants another password. Who starts had better end; who serves waits until it is put right."""
