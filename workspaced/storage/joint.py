"""Work of a kind that costs less when that of several callers is done in one go than one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import Any, Generic, Self, TypeAlias, TypeVar

from workspaced.storage.port import Transaction

T = TypeVar("T")
Work: TypeAlias = Callable[[Transaction], Any]


class Joint(ABC, Generic[T]):
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


def runs(works: Sequence[Work]) -> list[list[Work]]:
    """The work in its order, cut where neighbours can't be done together."""
    return [list(run) for _, run in groupby(works, key=_kind)]


def in_one_go(run: Sequence[Work]) -> Callable[[Transaction], Sequence[Any]] | None:
    """The whole run as one piece of work, as `Joint.together` says; None where there is nothing to do together."""
    pieces = [work for work in run if isinstance(work, Joint)]
    return (lambda tx: pieces[0].together(tx, pieces)) if len(pieces) > 1 else None


def _kind(work: Work) -> Hashable:
    """Equal to no other's for what is no `Joint`."""
    return work.kind if isinstance(work, Joint) else id(work)
