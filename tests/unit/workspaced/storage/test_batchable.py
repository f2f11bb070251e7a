from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from workspaced.storage.batchable import BatchableWork, run_batches
from workspaced.storage.port import Transaction

_NO_TRANSACTION: Any = None


@dataclass(eq=False)
class _Piece(BatchableWork[str]):
    sink: str
    name: str
    batches: list[list[str]]

    @property
    def kind(self) -> Hashable:
        return self.sink

    def __call__(self, _tx: Transaction, /) -> str:
        return f"{self.name} alone"

    def together(self, _tx: Transaction, pieces: Sequence[Self], /) -> Sequence[str | None]:
        self.batches.append([piece.name for piece in pieces])
        return [piece.name for piece in pieces]


def _attempt(work: Callable[[Transaction], Any]) -> tuple[Any, BaseException | None]:
    return work(_NO_TRANSACTION), None


def test_pieces_of_alternating_kinds_are_done_together_and_their_outcomes_are_in_order() -> None:
    batches: list[list[str]] = []
    works = [_Piece(sink, f"{sink}{number}", batches) for number in range(3) for sink in "ab"]
    outcomes = run_batches([*works, lambda _tx: "other"], _attempt)
    assert batches == [["a0", "a1", "a2"], ["b0", "b1", "b2"]]
    assert [result for result, _ in outcomes] == ["a0", "b0", "a1", "b1", "a2", "b2", "other"]


def test_a_batch_that_is_left_is_not_tried_piece_by_piece() -> None:
    attempts: list[object] = []

    def leave(work: object) -> None:
        attempts.append(work)

    works = [_Piece("a", name, []) for name in ("one", "two", "three")]
    assert run_batches(works, leave) == [None, None, None]
    assert len(attempts) == 1
