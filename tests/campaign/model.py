"""What the sinks of a campaign have to contain: a few rules, without any code of the daemon."""

from __future__ import annotations

from collections.abc import Sequence

from tests.campaign.sources import Source

Entries = dict[str, str]


class SinkModel:
    """One sink. ``held``: what the service has; ``known``: what the state file knows of each source.

    Both differ only after a restored state file, until the sources name a key again.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.held: Entries = {}
        self.known: dict[str, Entries] = {source.name: {} for source in sources}

    def update(self, *, lost: bool, checked: bool) -> None:
        """Everything is read and delivered. ``lost``: the sink was deleted before; ``checked``: `ingestd drift` has run."""
        before = self._union()
        named: Entries = {}
        rejects = False
        for source in self.sources:
            reading, known = source.reading(), self.known[source.name]
            rejects |= bool(reading.rejected or reading.unknown or reading.entries.keys() & named.keys())
            stays = {key: value for key, value in known.items() if reading.unknown or key in reading.rejected}
            self.known[source.name] = (stays if source.removes else known) | reading.entries
            named |= reading.entries
        after = self._union()
        if lost:
            self.held = after
        self.held = {key: value for key, value in self.held.items() if key in after or key not in before} | named
        # Entries of a time that the restored state file does not know.
        if checked and not rejects and all(source.removes for source in self.sources):
            self.held = {key: value for key, value in self.held.items() if key in after}

    def repair(self) -> None:
        """Apply `ingestd drift --repair`: the values that the state file knows are sent again."""
        self.held |= self._union()

    def snapshot(self) -> dict[str, Entries]:
        """Return what a backup of the state file knows."""
        return {name: dict(entries) for name, entries in self.known.items()}

    def _union(self) -> Entries:
        return {key: value for entries in self.known.values() for key, value in entries.items()}
