"""The report of one pass over a source."""

from __future__ import annotations

import msgspec

from ingestd.mirror.port import RunSummary


class PassReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one pass over a source.

    ``read``: the runs of the partitions with something to read. ``away``: why a partition or the source is unavailable now;
    empty if all are available. ``retry_after``: the seconds for which the source asked not to be read. ``broken``: why the
    source can't be used as configured; empty if it can. ``rejected``: partitions that can't be read as configured, each with
    the reason. ``began``: when the pass began, in seconds since the epoch. ``complete``: every partition was read to its end or
    is unchanged. ``whole``: the source has partitions, and all of them are snapshots with ``deletes: remove``, so the source
    names all entries of the pipeline. ``held``: a partition has a held or discarded run. ``cut``: a stop or a pause ended the
    pass early. ``waits``: a file was not read, because it is not stable or ready yet. ``stopped``: why a permanent partition
    (a table) can't be read; empty for a file. ``unmounted``: the source is unavailable because its share is not mounted.
    """

    pipeline: str
    read: tuple[RunSummary, ...] = ()
    away: str = ""
    retry_after: float = 0.0
    broken: str = ""
    rejected: tuple[str, ...] = ()
    began: float = 0.0
    complete: bool = False
    whole: bool = False
    held: bool = False
    cut: bool = False
    waits: bool = False
    stopped: str = ""
    unmounted: bool = False

    @property
    def names_all(self) -> bool:
        """Whether all present content of the source was read, or is held or rejected."""
        return not (self.failure or self.cut or self.waits)

    @property
    def failure(self) -> str:
        """Why the source could not be read to its end; empty if it could. A rejected file is no failure."""
        return self.away or self.broken or self.stopped
