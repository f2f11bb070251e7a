"""Sources that the simulated hosts share: files that are archived, and a sender that keeps what was not confirmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ingestd.core.address import SinkAddress
from ingestd.sdk import Acknowledgement, Batch, Cursor, Partition, pack
from tests.simulation.pausable_thread import pause
from tests.simulation.sources import WatchedSource
from tests.support.scripted_source import Script


class ArchivedSource(WatchedSource):
    """Files that are archived when they are acknowledged, so they can't be read again."""

    def holds(self, name: str) -> bool:
        """Return whether the file is not archived."""
        return name in self.script.contents

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        super().acknowledge(partition, cursor, acknowledgement)
        content = self.script.contents.get(partition.name)
        if content is not None and content.version == cursor["version"]:
            self.script.take_away(partition.name)


@dataclass(slots=True)
class Sender:
    """A client of a push source, or the session of a broker: it sends again what was not confirmed, in order.

    ``on_confirmed`` is called with key and value of each message when it is confirmed for the first time.
    """

    on_confirmed: Callable[[str, str], None]
    messages: list[tuple[str, str]] = field(default_factory=list)
    confirmed: set[str] = field(default_factory=set)

    def unconfirmed(self) -> list[tuple[str, str]]:
        """Return key and value of the messages that were not confirmed."""
        return [one for one in self.messages if one[0] not in self.confirmed]

    def confirm(self, key: str, value: str) -> None:
        """Forget a message."""
        if key not in self.confirmed:
            self.confirmed.add(key)
            self.on_confirmed(key, value)


class PushedSource(WatchedSource):
    """Messages of a sender, confirmed with ``acknowledge: delivered``: as `connectors.push` and `connectors.mqtt` do it.

    A new connection gets all messages that were not confirmed.
    """

    confirms_delivery = True

    def __init__(
        self, sender: Sender, *, watchers: dict[str, Callable[[], None]], name: str, rescan_seconds: float
    ) -> None:
        super().__init__(Script(), watchers=watchers, name=name, rescan_seconds=rescan_seconds)
        self._sender = sender
        self._taken: set[str] = set()
        self._uncommitted: tuple[int, str, str] | None = None
        self._undelivered: list[tuple[int, str, str]] = []

    def partitions(self) -> list[Partition]:
        return [Partition(name="push", snapshot=False, replayable=False)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - there is one
        count = int(str(cursor["records"])) if cursor is not None else 0
        fresh = [one for one in self._sender.unconfirmed() if one[0] not in self._taken]
        try:
            for number, (key, value) in enumerate(fresh, 1):
                pause()
                count += 1
                self._uncommitted = (count, key, value)
                self._taken.add(key)
                last = number == len(fresh)
                yield pack([{"k": key, "v": value}], cursor={"records": count}, positions=[count], last=last)
        finally:
            if self._uncommitted is not None:  # it was not stored, so it is sent again
                self._taken.discard(self._uncommitted[1])
                self._uncommitted = None

    def committed(self, partition: Partition, cursor: Cursor) -> None:  # noqa: ARG002 - there is one
        if self._uncommitted is not None:
            self._undelivered.append(self._uncommitted)
            self._uncommitted = None

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:  # noqa: ARG002
        pause()
        while self._undelivered and self._undelivered[0][0] <= int(str(cursor["records"])):
            _, key, value = self._undelivered.pop(0)
            self._sender.confirm(key, value)


@dataclass(slots=True, kw_only=True)
class SharedSource:
    """A source that all hosts reach, and its sink. ``rows``: its last content; ``wanted``: what the sink holds in the end.

    ``held``: the run of its content is held, and no operator approves it. ``unapproved``: the values of such content.
    """

    name: str
    sink: SinkAddress
    script: Script
    sender: Sender | None = None
    rows: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, str] = field(default_factory=dict)
    approved: bool = False
    held: bool = False
    may_shrink: bool = False
    unapproved: set[str] = field(default_factory=set)
