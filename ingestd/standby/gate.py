"""A gate that closes sinks until they are compared. After a take-over, their content may be newer than the state file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ingestd.core.address import SinkAddress


class SinkGate:
    """The closed sinks. ``on_open`` is called each time that a sink opens. Call the methods on the event loop's thread."""

    def __init__(self, closed: Iterable[SinkAddress] = (), *, on_open: Callable[[], None] = lambda: None) -> None:
        self._closed = set(closed)
        self.on_open = on_open

    @property
    def closed(self) -> frozenset[SinkAddress]:
        """The sinks that get no entries yet."""
        return frozenset(self._closed)

    def is_open(self, sink: SinkAddress) -> bool:
        """Return whether entries may be sent to a sink."""
        return sink not in self._closed

    def open(self, sink: SinkAddress) -> None:
        """Permit that entries are sent to a sink from now on."""
        if sink in self._closed:
            self._closed.discard(sink)
            self.on_open()
