"""Work of a kind that costs less when that of several callers is done in one go than one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Any, Generic, Self, TypeAlias, TypeVar

from workspaced.storage.port import Transaction

T = TypeVar("T")
Work: TypeAlias = Callable[[Transaction], Any]
Outcome: TypeAlias = tuple[Any, BaseException | None]
"""What a piece of work returned, or what it raised."""

OutcomeT = TypeVar("OutcomeT", bound=Outcome | None)


class BatchableWork(ABC, Generic[T]):
    """A piece of work for `workspaced.storage.port.Store.write`, done alone or together with others of its kind.

    The result is the same either way. Who shares a transaction has no claim to an order within it: each asked before any
    of the others was answered.
    """

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """Equal for what can be done together."""

    @abstractmethod
    def __call__(self, tx: Transaction, /) -> T:
        """Do this piece alone."""

    @abstractmethod
    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[T | None]:
        """Do the pieces, of which this is the first; None for each that is to be done alone, after the others.

        Where this raises, all of them are done alone: so it need not tell whose fault it was.
        """


def run_batches(works: Sequence[Work], attempt: Callable[[Work], OutcomeT]) -> list[OutcomeT | Outcome]:
    """The outcome of each piece in its order, by attempts: neighbours of a kind in one, and alone where that does not do."""
    outcomes: list[OutcomeT | Outcome] = []
    for _, neighbours in groupby(works, key=_kind):
        run = list(neighbours)
        for work, result in zip(run, _in_one_go(run, attempt), strict=True):
            outcomes.append(attempt(work) if result is None else (result, None))
    return outcomes


def _in_one_go(run: Sequence[Work], attempt: Callable[[Work], OutcomeT]) -> Sequence[Any]:
    """What came of each piece; None for those that are to be done alone."""
    pieces = [work for work in run if isinstance(work, BatchableWork)]
    if len(pieces) > 1:
        outcome: Outcome | None = attempt(lambda tx: pieces[0].together(tx, pieces))
        if outcome and outcome[1] is None:
            results: Sequence[Any] = outcome[0]
            return results
    return [None] * len(run)


def _kind(work: Work) -> Hashable:
    """Equal to no other's for what is no `BatchableWork`."""
    return work.kind if isinstance(work, BatchableWork) else id(work)
