"""Partitions that the source no longer has: their rejections are dropped, and their rows are pruned."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from ingestd.core.errors import SourceUnavailable
from ingestd.intake.notice import Failures
from ingestd.intake.source_failures import SourceFailures
from ingestd.mirror.sqlite.runs.pruner import Pruner
from ingestd.sdk import Connector, Holds
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.rejected import RejectionsDropped

_PRESENT = 50
"""A pass stops its checks after it found this many rejected partitions in the source, because a check may need a request."""


class RemovedPartitions:
    """Finds the removed partitions of one pipeline."""

    def __init__(
        self,
        pipeline: str,
        connector: Connector,
        pruner: Pruner,
        *,
        emit: Emit,
        failures: SourceFailures,
    ) -> None:
        self._pipeline = pipeline
        self._connector = connector
        self._holder = connector if isinstance(connector, Holds) else None
        self._pruner = pruner
        self._emit = emit
        self._failures = failures
        self._may_be_rejected = True
        self._looked_until = 0

    def note_rejected(self) -> None:
        """Make the next pass check the rejected partitions, because a partition was rejected."""
        self._may_be_rejected = True

    def drop_rejections(self, listed: Container[str]) -> None:
        """Drop the rejections of partitions that a person has removed. ``listed``: the names that the source has just listed.

        The source is asked about some rejected partitions that are not listed; the next call continues with later partitions.
        """
        if self._holder is None or not self._may_be_rejected or self._connector.moves_failed:
            return
        rejected = sorted(self._pruner.rejected_partitions(self._pipeline))
        self._may_be_rejected = bool(rejected)
        self._failures.unchecked.keep_only({name for _, name in rejected})
        present = 0
        unlisted = (one for one in rejected if one[0] > self._looked_until and one[1] not in listed)
        for identity, name, is_gone in self._checked(self._holder, unlisted, self._failures.unchecked):
            if is_gone:
                self._pruner.drop_rejected(identity)
                self._emit(RejectionsDropped(by="", chosen=f"the removed file {name}", rejections=1))
            else:
                present += 1
                if present == _PRESENT:
                    self._looked_until = identity
                    return
        self._looked_until = 0

    def prune(self) -> None:
        """Delete rows that are no longer needed. The source is asked about a few old partitions."""
        if self._holder is not None:
            old = self._pruner.old_partitions(self._pipeline)
            for identity, _, is_gone in self._checked(self._holder, old, self._failures.unpruned):
                if is_gone:
                    self._pruner.note_gone(identity)
        self._pruner.prune()

    def _checked(
        self, holder: Holds, partitions: Iterable[tuple[int, str]], failures: Failures
    ) -> Iterator[tuple[int, str, bool]]:
        """Yield (id, name, is_gone) of partitions. ``is_gone``: the source no longer has the partition; False if unknown."""
        for identity, name in partitions:
            is_gone = False
            try:
                is_gone = not holder.holds(name)
            except SourceUnavailable:
                return  # an unavailable source does not show whether it has a partition
            except Exception as error:  # noqa: BLE001 - a plug-in's failure to look at one file must not stop other partitions
                self._failures.report(failures, name, error)
            else:
                failures.clear(name)
            yield identity, name, is_gone
