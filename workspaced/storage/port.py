"""The interface between the resources and a database.

The store of a resource consists of functions of a `ReadTransaction` or a `Transaction`, and SQL by name. It uses no threads
and no drivers. Statements have ``:name`` parameters, except for `Transaction.load`. A row is a tuple in the order of the
statement's columns.
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
"""How many queries of `Store.read_brief` run at once."""
STREAM_THREADS = 4
"""How many streams read from the database at once; the others wait for their next rows."""


class ReadTransaction(Protocol):
    """A consistent view of the database."""

    def one(self, statement: str, values: Values = ..., /) -> Row | None:
        """Return the first row, if there is one."""

    def all(self, statement: str, values: Values = ..., /) -> list[Row]:
        """Return all rows."""

    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Yield all rows, at most ``size`` at a time."""


class Transaction(ReadTransaction, Protocol):
    """What a write may do; all of it becomes durable together, or nothing does."""

    def run(self, statement: str, values: Values = ..., /) -> int:
        """Run a statement; return how many rows it changed."""

    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows: ``statement`` ends with VALUES, and each row has as many values as it names columns."""

    def defer(self, statement: str, row: Row, /) -> None:
        """Insert one row like `load`, at the end of the transaction, together with the rows of all who share it.

        For rows that are only appended and not read within the transaction. An undone transaction undoes them too.
        """

    def notify(self, channel: str, /) -> None:
        """Wake the listeners of the channel (`Store.listen`) when this is durable; they may be woken in vain if it is undone."""

    def nested(self) -> AbstractContextManager[None]:
        """Undo what happens inside the block, and only that, if the block raises."""


class Store(Protocol):
    """The database as one process uses it."""

    async def read(self, query: Callable[[ReadTransaction], T]) -> T:
        """Run a query in one consistent view.

        Raises:
            UnavailableProblem: the database is busy or can't be reached.
        """

    async def read_brief(self, query: Callable[[ReadTransaction], T]) -> T:
        """Run a query of a few rows found by indexes, like `read`, but without waiting for the queries of `read`.

        It has its own connections and threads, so that callers are authenticated however many lists are being read.

        Raises:
            UnavailableProblem: the database is busy or can't be reached.
        """

    def stream(self, query: Callable[[ReadTransaction], Iterator[T]]) -> AsyncGenerator[T, None]:
        """Yield what the query yields, in one consistent view, which is held until the iterator ends or is closed."""

    async def write(self, work: Callable[[Transaction], T], *, weight: int = 1) -> T:
        """Do work in a transaction; when this returns, its changes survive a loss of power.

        The work of several callers may share a transaction. An exception of one undoes only its own part, and is raised at its
        own caller. ``weight`` is the approximate number of rows. The work runs on another thread and must not block. It may run
        again after it was undone, so it must have no effects besides its result.

        Raises:
            UnavailableProblem: the database is busy, full or can't be reached; nothing was changed.
        """

    def listen(self, channel: str, wake: Callable[[], None]) -> None:
        """Call ``wake`` on this event loop after each commit that notifies the channel.

        Commits of this process are always reported; those of others may be missed, so a listener must also look periodically.
        """

    async def check(self) -> None:
        """Check reading, writing and the schema (readiness).

        Raises:
            UnavailableProblem: one of them fails; the message says which.
        """


CommitObserver: TypeAlias = Callable[[int, float], None]
"""Called after each commit with the number of callers, and the seconds from the first statement on. On any thread."""


class StoreOfProcess(Store, Protocol):
    """A store with its life cycle: it is started once and stopped once."""

    async def start(self) -> None:
        """Begin to accept work.

        Raises:
            StorageUnusable: the store can never start.
        """

    async def stop(self) -> None:
        """Finish all accepted work, then disconnect from the database."""


class StorageUnusable(Exception):
    """The service can't start with this data: not writable, damaged, or written by a newer program."""


class PasswordRefused(UnavailableProblem):
    """The database server refused the password. At a start this is fatal; a running service waits until it is corrected."""
