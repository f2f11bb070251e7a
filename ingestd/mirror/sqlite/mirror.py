"""The mirror in one SQLite file: the default implementation of `ingestd.mirror.port`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from ingestd.core.address import SinkAddress
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.mirror.sqlite.drift.drift_store import DriftStore
from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.failed_parts import FailedPartStore
from ingestd.mirror.sqlite.pauses import PauseStore
from ingestd.mirror.sqlite.rejections.rejected_store import RejectedStore
from ingestd.mirror.sqlite.runs.cursor_store import CursorStore
from ingestd.mirror.sqlite.runs.intake_store import IntakeStore
from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile, open_read_only
from ingestd.mirror.sqlite.state_file.sequence import SequenceFile
from ingestd.mirror.sqlite.status_store import Observer
from ingestd.wire.writer import Writer


class SqliteMirror:
    """The open state file with its interfaces: intake, delivery, rejections, drift and status.

    ``sequence``: the sequence file of the state file. ``on_pending`` is called with the sink's id when entries become pending,
    in the committing thread. ``on_acknowledged`` is called when deferred acknowledgements are written. ``on_unwritable`` is
    called with a sentence when the file cannot be written, ``on_writable`` when it can be written again.
    """

    def __init__(self, state: StateFile, sequence: SequenceFile, *, now: Callable[[], float]) -> None:
        claimed_segments = ClaimedSegments()
        opened: set[int] = set()
        self._state = state
        self._now = now
        self.sequence = sequence
        self.on_pending: Callable[[int], None] = lambda _: None
        self.on_acknowledged: Callable[[], None] = lambda: None
        self.on_unwritable: Callable[[str], None] = lambda _: None
        self.on_writable: Callable[[], None] = lambda: None
        state.on_unwritable = self._report_unwritable
        state.on_writable = self._report_writable
        self.intake = IntakeStore(
            state, now=now, claimed_segments=claimed_segments, opened=opened, announce=self._announce
        )
        watched: set[int] = set()
        self.delivery = DeliveryStore(
            state,
            now=now,
            claimed_segments=claimed_segments,
            watched=watched,
            sequence=sequence,
            first_readings=self.intake.first_readings,
            announce=self._announce,
            on_written=self._report_acknowledged,
        )
        self.rejected = RejectedStore(state, now=now, announce=self._announce)
        self.drift = DriftStore(
            state, now=now, claimed_segments=claimed_segments, opened=opened, watched=watched, announce=self._announce
        )
        self.failed_parts = FailedPartStore(state)
        self.cursors = CursorStore(state)
        self.pauses = PauseStore(state)
        self.status = Observer(state.reader())

    @property
    def unwritable(self) -> str:
        """Why the state file cannot be written now; empty if it can."""
        return self._state.unwritable

    def note_behind(self, newest: Writer) -> str:
        """Record that the service has newer requests than this state file knows; return the reason. Blocks.

        Afterwards every adopted sink is in doubt, and the next start uses a higher attempt number than ``newest``.

        Raises:
            MirrorError: the files can't be written.
        """
        reason = "The service has newer requests of this state file: it was replaced by an older copy."
        self.sequence.raise_attempt(newest.attempt)
        with self._state.writing() as connection:
            connection.execute(SQL["doubt_add"], {"since": self._now(), "reason": reason})
        return reason

    def note_restored(self, changed_since: float) -> str:
        """Record that another process may have sent newer entries than this state file knows; return the reason. Blocks.

        ``changed_since``: a time of the service, in seconds since the epoch. If the service changed an entry after this time,
        the service's value is newer than the pending value of this state file, unless a source confirms the pending value.

        Raises:
            MirrorError: the file can't be written.
        """
        reason = "The state file is a shipment of another host, which may have sent more since."
        with self._state.writing() as connection:
            parameters = {"since": self._now(), "reason": reason, "changed_since": changed_since}
            connection.execute(SQL["doubt_restored"], parameters)
        return reason

    def note_written_before(self, sink: SinkAddress) -> None:
        """Record that an unknown state file has written the sink, and may have left entries in the sink. Blocks.

        Raises:
            MirrorError: the file can't be written.
        """
        with self._state.writing() as connection:
            connection.execute(SQL["sink_written_before"], (sink.workspace, sink.by, sink.name))

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        now: Callable[[], float] = time.time,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
        granted: Writer | None = None,
    ) -> SqliteMirror:
        """Open or create the state file at ``path``. ``granted``: see `SequenceFile`.

        Raises:
            MirrorBusy, MirrorNewer, MirrorCorrupt, MirrorError: see `StateFile`.
        """
        with ExitStack() as undone:
            state = StateFile(path, factory=factory)
            undone.callback(state.close)
            sequence = SequenceFile(state, path, now=now(), granted=granted)
            undone.callback(sequence.close)
            mirror = cls(state, sequence, now=now)
            undone.pop_all()
            return mirror

    @staticmethod
    def observe(path: Path) -> Observer:
        """Open a read-only view of a state file that another process may use.

        Raises:
            MirrorError: there is no file, or it can't be read.
        """
        return Observer(open_read_only(path))

    def close(self) -> None:
        """Finish the running work, then close the file."""
        self.delivery.close()
        self.rejected.close()
        self.drift.close()
        self.status.close()
        try:
            self.sequence.close()
        finally:
            self._state.close()

    def _announce(self, sink: int) -> None:
        self.on_pending(sink)

    def _report_acknowledged(self) -> None:
        self.on_acknowledged()

    def _report_unwritable(self, sentence: str) -> None:
        self.on_unwritable(sentence)

    def _report_writable(self) -> None:
        self.on_writable()
