"""Work that costs less if the work of several callers is done together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Any, Generic, Self, TypeAlias, TypeVar

from workspaced.storage.port import Transaction

T = TypeVar("T")
Work: TypeAlias = Callable[[Transaction], Any]
Outcome: TypeAlias = tuple[Any, BaseException | None]
"""The result of a piece of work, or the exception that it raised."""

OutcomeT = TypeVar("OutcomeT", bound=Outcome | None)


class PartialChange(Exception):
    """A piece of a group failed, and its changes can't be distinguished from those of other pieces."""


class BatchableWork(ABC, Generic[T]):
    """Work for `workspaced.storage.store.Store.write` that can be done alone or together with other work of its kind.

    The result is the same either way. Work that shares a transaction is done in no particular order, because each caller called
    before any other got its result.
    """

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """Equal for work that can be done together."""

    @abstractmethod
    def __call__(self, tx: Transaction, /) -> T:
        """Do this work alone."""

    @abstractmethod
    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[T | None]:
        """Do the work of all ``pieces``; this is the first of them. Return None for each that must be done alone afterwards.

        If this raises, all of them are done alone, so the exception need not name the piece that failed.
        """


def run_batches(works: Sequence[Work], attempt: Callable[[Work], OutcomeT]) -> list[OutcomeT | Outcome]:
    """Return the outcome of each piece, in order. Neighbours of a kind are tried together, and alone if that fails."""
    outcomes: list[OutcomeT | Outcome] = []
    for _, neighbours in groupby(works, key=_kind):
        run = list(neighbours)
        for work, result in zip(run, _try_together(run, attempt), strict=True):
            outcomes.append(attempt(work) if result is None else (result, None))
    return outcomes


def _try_together(run: Sequence[Work], attempt: Callable[[Work], OutcomeT]) -> Sequence[Any]:
    """Return the results; None for work that must be done alone."""
    pieces = [work for work in run if isinstance(work, BatchableWork)]
    if len(pieces) > 1:
        outcome: Outcome | None = attempt(lambda tx: pieces[0].together(tx, pieces))
        if outcome and outcome[1] is None:
            results: Sequence[Any] = outcome[0]
            return results
    return [None] * len(run)


def _kind(work: Work) -> Hashable:
    """Return the work's kind; for other callables a value that is equal to no other."""
    return work.kind if isinstance(work, BatchableWork) else id(work)
