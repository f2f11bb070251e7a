"""A source that is only read: nothing is acknowledged, moved, archived or deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ingestd.core.errors import RecordUnreadable
from ingestd.core.record import Batch, Cursor, Partition
from ingestd.sdk import Connector


class ReadOnlySource(Connector):
    """Passes only the calls that a reading needs to a connector.

    A connector changes its source only when it is notified of an acknowledgement or of a failure. Such notifications are not
    passed on. The optional protocols of the connector are hidden, so nothing is watched or pruned.
    """

    def __init__(self, connector: Connector) -> None:
        super().__init__(connector.options, connector.context)
        self._connector = connector

    def partitions(self) -> Iterable[Partition]:
        """See `Connector.partitions`."""
        return self._connector.partitions()

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch | RecordUnreadable]:
        """See `Connector.read`."""
        return self._connector.read(partition, cursor)

    @property
    def record_settings(self) -> Mapping[str, Any]:
        """See `Connector.record_settings`."""
        return self._connector.record_settings

    def pause_backfill(self, paused: bool) -> None:
        """See `Connector.pause_backfill`."""
        self._connector.pause_backfill(paused)

    def reset(self) -> None:
        """See `Connector.reset`."""
        self._connector.reset()

    def waiting(self) -> float | None:
        """See `Connector.waiting`."""
        return self._connector.waiting()

    def interrupt(self) -> None:
        """See `Connector.interrupt`."""
        self._connector.interrupt()

    def close(self) -> None:
        """See `Connector.close`."""
        self._connector.close()
