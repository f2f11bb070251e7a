"""Execution of `ingestd cursor set`, `rewind` and `reset`, and of `ingestd backfill`, between two passes of the pipeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ingestd.core.errors import SourceError
from ingestd.core.record import Cursor
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import CursorsMoved, MoveCursor
from ingestd.mirror.port import HeldRun
from ingestd.mirror.reports import StoredCursor
from ingestd.mirror.sqlite import Observer
from ingestd.mirror.sqlite.runs.cursor_store import CursorStore
from ingestd.sdk import Connector, CursorMove
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.intake import CursorMoved


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorMover:
    """Moves cursors.

    ``between_passes`` runs a call for a pipeline while no pass of this pipeline runs. ``read``, ``read_again`` and ``read_now``
    request a pass of a pipeline. ``read_again`` also makes the connector forget the partitions that it has read; ``read_now``
    does not wait for the schedule. ``held_runs`` returns the runs that wait for a decision.
    """

    keeper: CursorStore
    reader: Observer
    connectors: Mapping[str, Connector]
    between_passes: Callable[[str, Callable[[], CursorsMoved]], Awaitable[CursorsMoved]]
    read_again: Callable[[str], None]
    read: Callable[[str], None]
    read_now: Callable[[str], None]
    held_runs: Callable[[], Sequence[HeldRun]]
    emit: Emit

    async def move(self, request: MoveCursor, *, by: str) -> CursorsMoved:
        """Move cursors and request a pass; ``by`` is the requesting account.

        Raises:
            RequestRefused: there is no such pipeline or partition, or the cursor can't be moved this way.
        """
        if request.pipeline not in self.connectors:
            raise RequestRefused(
                f"The daemon runs no pipeline '{request.pipeline}'. Use 'ingestd reload' after a new pipeline."
            )
        moved = await self.between_passes(request.pipeline, partial(self._move, request, by))
        request_pass = {"reset": self.read_again, "backfill": self.read_now}.get(request.action, self.read)
        request_pass(request.pipeline)
        return moved

    def _move(self, request: MoveCursor, by: str) -> CursorsMoved:
        known = {one.partition: one for one in self.reader.cursors(request.pipeline, request.partitions)}
        for name in request.partitions:
            if name not in known:
                raise RequestRefused(
                    f"Pipeline '{request.pipeline}' has read no partition '{name}'. 'ingestd cursor show "
                    f"{request.pipeline}' lists its partitions."
                )
        # If one of the cursors can't be moved, no cursor is moved.
        moved = {name: self._after(request, stored) for name, stored in known.items()}
        for name, after in moved.items():
            self.keeper.set_cursor(request.pipeline, name, after)
            self.emit(CursorMoved(pipeline=request.pipeline, partition=name, by=by, action=request.action))
        return CursorsMoved(partitions=tuple(known))

    def _after(self, request: MoveCursor, stored: StoredCursor) -> Cursor | None:
        if request.action == "reset":
            return None
        if request.action == "set":
            return request.cursor
        if request.action in {"backfill", "cancel"}:
            return self._backfilled(request, stored)
        reset = (
            f"Use 'ingestd cursor reset {request.pipeline}': everything is read again, and equal values are not sent."
        )
        if stored.cursor is None:
            raise RequestRefused(
                f"'{stored.partition}' has no cursor: its next reading starts at the beginning anyway."
            )
        try:
            moved = self.connectors[request.pipeline].move_cursor(stored.cursor, "rewind", request.to)
        except SourceError as error:
            raise RequestRefused(f"{error} {reset}") from error
        if moved is None:
            raise RequestRefused(f"The cursor of '{stored.partition}' can't be moved back to a value. {reset}")
        return moved

    def _backfilled(self, request: MoveCursor, stored: StoredCursor) -> Cursor:
        for held in self.held_runs():
            if (held.pipeline, held.partition) == (request.pipeline, stored.partition):
                raise RequestRefused(
                    f"Run {held.run} of '{stored.partition}' is held. Use 'ingestd approve {held.run}' or "
                    f"'ingestd discard {held.run}' first."
                )
        if stored.cursor is None:
            raise RequestRefused(f"'{stored.partition}' has no cursor: its next reading reads everything anyway.")
        move: CursorMove = "backfill" if request.action == "backfill" else "cancel"
        try:
            moved = self.connectors[request.pipeline].move_cursor(stored.cursor, move, "")
        except SourceError as error:
            raise RequestRefused(str(error)) from error
        if moved is None:
            raise RequestRefused(
                f"Pipeline '{request.pipeline}' reads no table of changes, so it has no backfill. "
                f"'ingestd cursor reset {request.pipeline} --all' has everything read again."
            )
        return moved
