"""Transactions: the interface between the resources and a database.

The store of a resource consists of functions that take a `ReadTransaction` or a `Transaction`, and of named SQL statements. It
uses no threads and no drivers. Statements have ``:name`` parameters, except for `Transaction.load`. A row is a tuple in the
order of the statement's columns. A SELECT for a class ``Stored…`` of a resource has its columns in the order of the fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from workspaced.core.problems import UnavailableProblem

Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Mapping[str, object]
NO_VALUES: Values = {}
Deferred: TypeAlias = tuple[int, frozenset[str]]
"""A savepoint for actions at the end of a transaction: the number of deferred rows, and the channels to notify."""


@dataclass(frozen=True, slots=True)
class JsonRows:
    """A parameter value that PostgreSQL gets as a JSON array of the rows. It is not used with SQLite."""

    rows: Sequence[object]


class ReadTransaction(ABC):
    """A consistent view of the database."""

    @abstractmethod
    def one(self, statement: str, values: Values = NO_VALUES, /) -> Row | None:
        """Return the first row, if there is one."""

    def existing(self, statement: str, values: Values = NO_VALUES, /) -> Row:
        """Return the first row of a statement that always finds a row. Raises LookupError: the data is damaged."""
        row = self.one(statement, values)
        if row is None:
            raise LookupError(f"no row was found by: {statement}")
        return row

    @abstractmethod
    def all(self, statement: str, values: Values = NO_VALUES, /) -> list[Row]:
        """Return all rows."""

    def ask(self, statement: str, values: Values = NO_VALUES, /) -> Callable[[], list[Row]]:
        """Run a statement now or together with the next statement; return a function that returns all of its rows.

        PostgreSQL gets both statements in one message.
        """
        rows = self.all(statement, values)
        return lambda: rows

    @abstractmethod
    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Yield all rows, at most ``size`` at a time."""


class Transaction(ReadTransaction):
    """The operations of a write. All of its changes become durable together, or none does."""

    def __init__(self) -> None:
        self._depth = 0
        self._rows: list[tuple[str, Row]] = []
        self.notified: set[str] = set()

    @abstractmethod
    def run(self, statement: str, values: Values = NO_VALUES, /) -> int:
        """Run a statement; return how many rows it changed."""

    def later(self, statement: str, values: Values = NO_VALUES, /) -> None:
        """Run a statement without a result, now or together with the next statement, in one message to PostgreSQL."""
        self.run(statement, values)

    @abstractmethod
    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows. ``statement`` ends with VALUES; each row has one value for each column of the statement."""

    def defer(self, statement: str, row: Row, /) -> None:
        """Insert one row like `load`, at the end of the transaction, together with the deferred rows of other callers.

        Use this method for rows that the transaction appends and does not read. An undone transaction inserts none of them.
        """
        self._rows.append((statement, row))

    def notify(self, channel: str, /) -> None:
        """Wake the listeners of the channel (`Store.listen`) when the transaction is durable.

        If the transaction is undone, the listeners may be woken needlessly.
        """
        self.notified.add(channel)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """If the context ends with an exception, undo only the changes that were made within the context."""
        self._depth += 1
        deferred = self.deferred()
        name = f"nested_{self._depth}"
        self._execute(f"SAVEPOINT {name}")
        try:
            yield
            self._execute(f"RELEASE {name}")  # waiting statements fail here at the latest
        except BaseException:
            self.discard(deferred)
            self._roll_back_to(name)
            raise
        finally:
            self._depth -= 1

    def deferred(self) -> Deferred:
        """Return a savepoint of the deferred rows and the channels, for `discard`."""
        return len(self._rows), frozenset(self.notified)

    def discard(self, since: Deferred) -> None:
        """Discard the deferred rows and the channels that were added after the savepoint ``since``."""
        rows, notified = since
        del self._rows[rows:]
        self.notified = set(notified)

    def _rows_by_statement(self) -> dict[str, list[Row]]:
        """Return the deferred rows by their statement, and clear the list."""
        rows: dict[str, list[Row]] = {}
        for statement, row in self._rows:
            rows.setdefault(statement, []).append(row)
        self._rows.clear()
        return rows

    @abstractmethod
    def _execute(self, statement: str) -> None:
        """Run a statement without parameters."""

    @abstractmethod
    def _roll_back_to(self, savepoint: str) -> None:
        """Undo and release the savepoint, unless the transaction has ended."""


class StorageUnusable(Exception):
    """The service can't start with this data: it is not writable, damaged, or written by a newer program."""


def no_response(seconds: float) -> UnavailableProblem:
    """Return the problem of a database that has not responded for some seconds."""
    sentence = f"The database has not responded within {seconds:g} seconds."
    return UnavailableProblem("storage_away", sentence, retry_seconds=5)


class StorageRefused(UnavailableProblem):
    """The address or the password must be corrected. At a start this is fatal; a running service waits for the correction."""
