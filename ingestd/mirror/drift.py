"""Drift: differences between the content of a sink and the confirmed state of the mirror.

See `ingestd.mirror.port` for the mirror. The contract suite is ``tests/contract/mirror_drift.py``.

A check begins, receives the content of the service in chunks, and ends with findings. Guarantees:

* A check compares only entries that were delivered before it began and are unchanged since. Entries that are pending, in
  flight, or written or removed by this daemon during the check are not drift.
* A rejected entry is not drift, even after its rejection was dropped: the service is expected to lack the entry.
* A key that was found in the service at adoption, and that no source has named, is not drift: the mirror follows the service.
  Any other key that no source has named was added by another program.
* A finding has an effect only if the entry has not changed since the comparison.

The mirror also knows the *unexplained* entries of a sink. No source has ever named such an entry, or the pipeline that wrote it
was removed or now has another sink or source. Only a check removes unexplained entries, and only if its caller has verified
that every source of the sink was read completely since the adoption.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

What: TypeAlias = Literal["added", "changed", "removed"]
"""What another program did with the key."""

DriftReaction: TypeAlias = Literal["", "sent again", "removed again", "adopted"]
"""The reaction to the finding; empty: none."""


RemoveUnexplained: TypeAlias = Literal["keep", "own", "remove"]
"""Which unexplained entries a check removes. keep: none · own: only entries that this daemon certainly wrote · remove: all."""

Why: TypeAlias = Literal["found", "inactive", "elsewhere", "retired"]
"""Why no source explains an entry. found: it was found in the service · inactive: its pipeline is no longer configured ·
elsewhere: its pipeline now writes another sink · retired: its pipeline now reads another source."""


class Unexplained(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that no source explains. ``pipeline``: its writer, empty if it was found in the service."""

    sink: str
    workspace: str
    key: str
    value: str | None
    data_type: str
    pipeline: str
    why: Why


class UnexplainedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of unexplained entries, ordered by sink and key. ``next``: the start of the next page, None after the last."""

    entries: tuple[Unexplained, ...]
    next: tuple[int, str] | None


class DriftFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A key that differs between the service and the mirror.

    ``wanted`` and ``wanted_type``: the last delivered value (None and empty for an added key). ``found`` and ``found_type``:
    the value in the service (None for a removed key). ``pipeline`` is empty for an added key. ``since``: time of the first
    finding. ``changed_by``, ``changed_at``: the account that changed the entry, and the time of the change; empty and None if
    the service does not report them. Times are seconds since the epoch. The names of the members are part of the output of
    `ingestd drift --json`.
    """

    sink: str
    workspace: str
    key: str
    what: What
    pipeline: str
    wanted: str | None
    wanted_type: str
    found: str | None
    found_type: str
    since: float
    reaction: DriftReaction
    changed_by: str = ""
    changed_at: float | None = None


class DriftStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the last check of a sink. Times are seconds since the epoch.

    ``at``: end of the last complete check (None: never); ``entries``: the number of entries that this check found.
    ``failure``: why the last attempt, at ``tried_at``, was incomplete; empty if it was complete. ``unexplained``: number of
    unexplained entries. ``swept``: number of unexplained entries that this check removed. ``repaired``: number of entries that
    this check sent again because the state file may be an older copy. ``undecided``: unexplained entries remain, and a check
    after the next delivery may show whether to remove them.
    """

    tried_at: float
    at: float | None
    entries: int
    added: int
    changed: int
    removed: int
    failure: str
    unexplained: int = 0
    swept: int = 0
    repaired: int = 0
    undecided: bool = False

    @property
    def found(self) -> int:
        """The number of keys that differ."""
        return self.added + self.changed + self.removed


class DriftPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of findings, ordered by sink and key. ``next``: the start of the next page, None after the last."""

    findings: tuple[DriftFinding, ...]
    next: tuple[int, str] | None


START = (0, "")
"""The start of the first page."""


class SinkOwnership(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a sink can be compared with its sources.

    ``rejected``: number of rejections of the sink's active pipelines. ``doubt``: see `ingestd.mirror.port.SinkStatus`.
    """

    rejected: int
    doubt: str
