"""Work that is cheaper if it is done together with the work of other callers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from workspaced.storage.port import Transaction

T = TypeVar("T")
Work: TypeAlias = Callable[[Transaction], Any]
Outcome: TypeAlias = tuple[Any, BaseException | None]
"""The result of a piece of work, or the exception that it raised."""

OutcomeT = TypeVar("OutcomeT", bound=Outcome | None)


class PartialChange(Exception):
    """A piece of a group failed, and its changes can't be distinguished from the changes of other pieces."""


class BatchableWork(ABC, Generic[T]):
    """Work for `workspaced.storage.store.Store.write` that can be done alone or together with other work of its kind.

    The result is the same in both cases. Work that shares a transaction is done in no particular order: all callers made their
    calls before the first of them got a result.
    """

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """The kind of this work, which is equal for work that can be done together."""

    @abstractmethod
    def __call__(self, tx: Transaction, /) -> T:
        """Do this work alone."""

    @abstractmethod
    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[T | None]:
        """Do the work of all ``pieces``; ``self`` is the first piece.

        Return the results in order; None for each piece that must be done alone afterwards.

        If this method raises, all pieces are done alone, so the exception need not name the piece that failed.
        """


def places_by_kind(works: Sequence[Work]) -> Collection[Sequence[int]]:
    """Return the indexes of the pieces of each kind. Callers of several sinks alternate, so the indexes may have gaps."""
    kinds: dict[Hashable, list[int]] = {}
    for place, work in enumerate(works):
        kinds.setdefault(_kind(work), []).append(place)
    return kinds.values()


def run_batches(works: Sequence[Work], attempt: Callable[[Work], OutcomeT]) -> list[OutcomeT | Outcome]:
    """Return the outcome of each piece, in order. Pieces of a kind are tried together, and alone if that fails.

    If ``attempt`` returns None for a batch, the result is None for each piece of the batch.
    """
    outcomes: dict[int, OutcomeT | Outcome] = {}
    for places in places_by_kind(works):
        run = [works[place] for place in places]
        batch = [work for work in run if isinstance(work, BatchableWork)]
        results: Sequence[Any] = [None] * len(run)
        if len(batch) > 1:
            outcome: OutcomeT = attempt(lambda tx, batch=batch: batch[0].together(tx, batch))  # type: ignore[misc]
            if outcome is None:
                outcomes |= dict.fromkeys(places, cast("OutcomeT", outcome))
                continue
            if outcome[1] is None:
                results = outcome[0]
        for place, result in zip(places, results, strict=True):
            outcomes[place] = attempt(works[place]) if result is None else (result, None)
    return [outcomes[place] for place in range(len(works))]


def _kind(work: Work) -> Hashable:
    """Return the work's kind; for other callables a value that is equal to no other value."""
    return work.kind if isinstance(work, BatchableWork) else id(work)
