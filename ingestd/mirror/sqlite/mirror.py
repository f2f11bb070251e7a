"""The mirror in one SQLite file: the default implementation of `ingestd.mirror.port`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from ingestd.mirror.sqlite.connection import StateFile, open_read_only
from ingestd.mirror.sqlite.delivering import DeliverySide
from ingestd.mirror.sqlite.drifting import DriftSide
from ingestd.mirror.sqlite.observing import Observer
from ingestd.mirror.sqlite.reading import IntakeSide
from ingestd.mirror.sqlite.retrying import RejectedSide


class SqliteMirror:
    """Opens the state file and offers its sides: intake, delivery, what is rejected, what has drifted, and status.

    ``on_pending`` is called, from whichever thread committed, each time something became pending.
    """

    def __init__(self, state: StateFile, *, now: Callable[[], float]) -> None:
        out: set[int] = set()
        self._state = state
        self.on_pending: Callable[[], None] | None = None
        self.intake = IntakeSide(state, now=now, out=out, announce=self._announce)
        watched: set[int] = set()
        self.delivery = DeliverySide(state, now=now, out=out, watched=watched)
        self.rejected = RejectedSide(state, now=now, announce=self._announce)
        self.drift = DriftSide(state, now=now, watched=watched, announce=self._announce)
        self.status = Observer(state.reader())

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        now: Callable[[], float] = time.time,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> SqliteMirror:
        """Open or create the state file at ``path``.

        Raises:
            MirrorBusy, MirrorNewer, MirrorCorrupt, MirrorError: see `StateFile`.
        """
        state = StateFile(path, factory=factory)
        try:
            return cls(state, now=now)
        except BaseException:
            state.close()
            raise

    @staticmethod
    def observe(path: Path) -> Observer:
        """A view of a state file that another process may be using.

        Raises:
            MirrorError: there is none, or it can't be read.
        """
        return Observer(open_read_only(path))

    def close(self) -> None:
        """Wait for settlements under way, then give the file back."""
        self.delivery.close()
        self.rejected.close()
        self.drift.close()
        self.status.close()
        self._state.close()

    def _announce(self) -> None:
        if self.on_pending is not None:
            self.on_pending()
