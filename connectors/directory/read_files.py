"""What one process remembers of the files it has dealt with, so that they cost a look at their status and no more."""

from __future__ import annotations

from collections.abc import Container

from connectors.files.identity import Identity


class ReadFiles:
    """Forgets with the process: whatever is lost here is found out again by reading. Bounded by what the folder holds."""

    def __init__(self) -> None:
        self._broken: dict[str, tuple[Identity, str]] = {}
        self._through: dict[str, Identity] = {}
        self._read: dict[str, Identity] = {}

    def keep_only(self, names: Container[str]) -> None:
        """Forget the files that are gone."""
        for known in (self._broken, self._through, self._read):
            for name in [name for name in list(known) if name not in names]:
                del known[name]

    def forget(self) -> None:
        """Find everything out again."""
        self._broken.clear()
        self._through.clear()
        self._read.clear()

    def broken(self, name: str, identity: Identity | None, reason: str) -> None:
        """The file can't be read as it is."""
        if identity is not None:
            self._broken[name] = (identity, reason)

    def mend(self, name: str) -> None:
        """What was wrong with the file may be mended, though the file itself is the same."""
        self._broken.pop(name, None)

    def why_broken(self, name: str, identity: Identity) -> str | None:
        """Why the file can't be read, if it is still the same; a changed permission makes it another."""
        known = self._broken.get(name)
        return known[1] if known is not None and known[0] == identity else None

    def through(self, name: str, identity: Identity) -> None:
        """Everything from the file is settled and it stays where it is."""
        self._through[name] = identity

    def read(self, name: str, identity: Identity) -> None:
        """The file was read as it is; whether all of it has arrived is another matter."""
        self._read[name] = identity

    def has_nothing_new(self, name: str, identity: Identity) -> bool:
        """Whether reading the file as it is would bring nothing."""
        if name in self._read and identity.same_content(self._read[name]):
            return True
        return self.is_through(name, identity)

    def is_through(self, name: str, identity: Identity) -> bool:
        """Whether there is nothing to do for the file as it is."""
        if name in self._through and identity.same_content(self._through[name]):
            return True
        return name in self._broken and self.why_broken(name, identity) is not None
