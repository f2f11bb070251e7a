"""Transactions: the interface between the resources and a database.

The store of a resource consists of functions of a `ReadTransaction` or a `Transaction`, and SQL by name. It uses no threads
and no drivers. Statements have ``:name`` parameters, except for `Transaction.load`. A row is a tuple in the order of the
statement's columns. So are the fields of the classes ``Stored…`` of the resources, in each SELECT of their rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeAlias

from workspaced.core.problems import UnavailableProblem

Row: TypeAlias = tuple[Any, ...]
Values: TypeAlias = Mapping[str, object]
NO_VALUES: Values = {}
Deferred: TypeAlias = tuple[int, frozenset[str]]
"""The state of what takes effect at a transaction's end: how many rows, and which channels."""


class ReadTransaction(ABC):
    """A consistent view of the database."""

    @abstractmethod
    def one(self, statement: str, values: Values = NO_VALUES, /) -> Row | None:
        """Return the first row, if there is one."""

    def existing(self, statement: str, values: Values = NO_VALUES, /) -> Row:
        """Return the first row of a statement that always has one. Raises LookupError: the data is damaged."""
        row = self.one(statement, values)
        if row is None:
            raise LookupError(f"no row was found by: {statement}")
        return row

    @abstractmethod
    def all(self, statement: str, values: Values = NO_VALUES, /) -> list[Row]:
        """Return all rows."""

    @abstractmethod
    def chunks(self, statement: str, values: Values, size: int, /) -> Iterator[list[Row]]:
        """Yield all rows, at most ``size`` at a time."""


class Transaction(ReadTransaction):
    """What a write may do; all of it becomes durable together, or nothing does."""

    def __init__(self) -> None:
        self._depth = 0
        self._rows: list[tuple[str, Row]] = []
        self.notified: set[str] = set()

    @abstractmethod
    def run(self, statement: str, values: Values = NO_VALUES, /) -> int:
        """Run a statement; return how many rows it changed."""

    @abstractmethod
    def load(self, statement: str, rows: Sequence[Row], /) -> None:
        """Insert many rows: ``statement`` ends with VALUES, and each row has as many values as it names columns."""

    def defer(self, statement: str, row: Row, /) -> None:
        """Insert one row like `load`, at the end of the transaction, together with the rows of all who share it.

        For rows that are only appended and not read within the transaction. An undone transaction undoes them too.
        """
        self._rows.append((statement, row))

    def notify(self, channel: str, /) -> None:
        """Wake the listeners of the channel (`Store.listen`) when this is durable; they may be woken in vain if it is undone."""
        self.notified.add(channel)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Undo what happens inside the block, and only that, if the block raises."""
        self._depth += 1
        deferred = self.deferred()
        name = f"nested_{self._depth}"
        self._execute(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            self.discard(deferred)
            self._roll_back_to(name)
            raise
        else:
            self._execute(f"RELEASE {name}")
        finally:
            self._depth -= 1

    def deferred(self) -> Deferred:
        """Return what will take effect at the end."""
        return len(self._rows), frozenset(self.notified)

    def discard(self, since: Deferred) -> None:
        """Discard the rows and channels that were added since then."""
        rows, notified = since
        del self._rows[rows:]
        self.notified = set(notified)

    def _rows_by_statement(self) -> dict[str, list[Row]]:
        """Return the deferred rows, and forget them."""
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


@lru_cache(maxsize=128)
def insert_of(statement: str, columns: int, rows: int, placeholder: str) -> str:
    """Return the INSERT of several rows."""
    row = f"({','.join([placeholder] * columns)})"
    return f"{statement} {','.join([row] * rows)}"


class StorageUnusable(Exception):
    """The service can't start with this data: not writable, damaged, or written by a newer program."""


class PasswordRefused(UnavailableProblem):
    """The database server refused the password. At a start this is fatal; a running service waits until it is corrected."""
