"""The header X-Writer (contract M11): a request that is older than another request of its writer changes nothing.

The check is the first step in the transaction of the work. So a late request either precedes a newer request, or waits until
the newer request is committed and is then refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Self

import msgspec

from ingestd.wire.writer import HEADER, Writer, parse_writer
from workspaced.core.problems import ConflictProblem, Invalid, Problem
from workspaced.http.operations import Call, Work
from workspaced.http.responses import Response
from workspaced.storage import writers
from workspaced.storage.batchable import BatchableWork
from workspaced.storage.port import Transaction


class WriterFencedProblem(ConflictProblem):
    """A newer request of the same writer came before this one."""

    def __init__(self, newest: Writer) -> None:
        detail = f"A newer request of this writer was accepted: epoch {newest.epoch}, attempt {newest.attempt}."
        super().__init__("writer_fenced", detail, headers=((HEADER, str(newest)),))


def writer_of(call: Call) -> Writer | None:
    """Return the writer that a request names; None if it names no writer, or if its path has no workspace.

    Raises:
        Invalid: the header is malformed.
    """
    header = call.headers.get(HEADER)
    if header is None or "workspace" not in call.names:
        return None
    if (writer := parse_writer(header)) is None:
        raise Invalid("bad_writer", "X-Writer must be a name, an epoch and an attempt: 'daemon-7;1;42'.")
    return writer


def make_fenced(work: Work, writer: Writer, call: Call, *, refused: Callable[[Problem], Response]) -> Work:
    """Return work that is refused after a newer request of the writer. Batchable work stays batchable."""
    kind = _BatchableFencedWork if isinstance(work.act, BatchableWork) else _FencedWork
    return msgspec.structs.replace(work, act=kind(work.act, writer, call.workspace_id, call.now, refused))


@dataclass(slots=True, eq=False)  # not frozen: creating a frozen instance takes three times as long
class _FencedWork:
    act: Callable[[Transaction], Response]
    writer: Writer
    workspace: str
    now: int
    refused: Callable[[Problem], Response]

    def __call__(self, tx: Transaction, /) -> Response:
        """Do the work, unless the request is late.

        Raises:
            WriterFencedProblem: a newer request of the writer was accepted.
        """
        if not self.raise_writer(tx):
            return self.act(tx)
        try:
            with tx.nested():
                return self.act(tx)
        except Problem as problem:
            # A refusal is an outcome: requests that were sent earlier must not take effect after the refusal.
            if problem.status >= 500:
                raise
            return self.refused(problem)

    def raise_writer(self, tx: Transaction) -> bool:
        """Raise the stored epoch and attempt to those of this request; return whether the stored values were older.

        Raises:
            WriterFencedProblem: a newer request of the writer was accepted.
        """
        newest, raised = writers.raise_to(tx, self.workspace, self.writer, now=self.now)
        if newest != self.writer:
            raise WriterFencedProblem(newest)
        return raised


class _BatchableFencedWork(_FencedWork, BatchableWork[Response]):
    """Like `_FencedWork`, for work that shares its statements with other work of the same writer."""

    act: BatchableWork[Response]

    @property
    def kind(self) -> Hashable:
        """Return the kind of ``act``, and its writer and workspace."""
        return _BatchableFencedWork, self.workspace, self.writer, self.act.kind

    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[Response | None]:
        """Do the work of all pieces, unless their requests are late.

        Raises:
            Problem: a newer request of the writer was accepted, or the work of at least one request failed.
        """
        self.raise_writer(tx)
        return self.act.together(tx, [piece.act for piece in pieces])
