"""The runs that a rollback undoes, and its changes. The names of members are part of `ingestd rollback --json`."""

from __future__ import annotations

from datetime import UTC

import msgspec

from ingestd.core.clock import moment


class RunSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The runs to roll back: one run, or all runs that began at ``since`` (seconds since the epoch) or later.

    ``pipeline`` and ``sink`` (its name or id) limit the runs; empty: all.
    """

    run: int | None = None
    since: float | None = None
    pipeline: str = ""
    sink: str = ""

    def __str__(self) -> str:
        """Return the selection for the log, with its time in UTC."""
        which = f"run {self.run}" if self.run is not None else f"runs since {moment(self.since or 0.0, UTC)}"
        filters = [f"{name} {getattr(self, name)}" for name in ("pipeline", "sink") if getattr(self, name)]
        return ", ".join([which, *filters])


class UndoneRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is rolled back. ``started``: seconds since the epoch. ``is_changed``: entries of its file or table change.

    ``is_held``: afterwards, the present content of its file or table is not delivered again. Otherwise nothing of it changes, or
    it is not read again: the source yields only new records, or its file is gone. ``held_run``: the run that `ingestd approve`
    then delivers; None if the file or table is not held, or if its held run was discarded.
    """

    run: int
    pipeline: str
    partition: str
    started: float
    is_held: bool
    held_run: int | None = None
    is_changed: bool = False


class UndoneKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key with its present and its restored value. ``now_type``, ``restored_type``: None if there is no value."""

    sink: str
    key: str
    now: str | None
    now_type: str | None
    restored: str | None
    restored_type: str | None


class LeftKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that the runs have changed but the rollback does not change, and the reason."""

    sink: str
    key: str
    reason: str


class Rollback(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a rollback that is planned or done.

    ``restored``: the number of entries that get a former value; ``removed``: the number of entries that the runs had created;
    ``created``: the number of entries that the runs had removed. ``keys``: the first changed keys. ``left``: the first keys
    that are not changed; ``left_count``: the number of all keys that are not changed.
    """

    runs: tuple[UndoneRun, ...]
    restored: int
    removed: int
    created: int
    left_count: int
    keys: tuple[UndoneKey, ...]
    left: tuple[LeftKey, ...]

    @property
    def changed(self) -> int:
        """The number of entries that are changed."""
        return self.restored + self.removed + self.created
