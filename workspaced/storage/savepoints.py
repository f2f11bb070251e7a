"""The part of a transaction that both databases share: savepoints, deferred rows, and notifications."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeAlias

from workspaced.storage.port import Row

Deferred: TypeAlias = tuple[int, frozenset[str]]
"""The state of what takes effect at a transaction's end: how many rows, and which channels."""


class PartialChange(Exception):
    """A piece of a group failed, and its changes can't be distinguished from those of the others."""


class SavepointTransaction(ABC):
    """Deferred rows and notifications, which a failing savepoint discards."""

    def __init__(self) -> None:
        self._depth = 0
        self._rows: list[tuple[str, Row]] = []
        self.notified: set[str] = set()

    def defer(self, statement: str, row: Row, /) -> None:
        """See `workspaced.storage.port.Transaction.defer`."""
        self._rows.append((statement, row))

    def notify(self, channel: str, /) -> None:
        """See `workspaced.storage.port.Transaction.notify`."""
        self.notified.add(channel)

    def deferred(self) -> Deferred:
        """Return what will take effect at the end."""
        return len(self._rows), frozenset(self.notified)

    def discard(self, since: Deferred) -> None:
        """Discard the rows and channels that were added since then."""
        rows, notified = since
        del self._rows[rows:]
        self.notified = set(notified)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Run the block in a savepoint."""
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
