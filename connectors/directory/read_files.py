"""The files that this process has read, so that an unchanged file costs one stat call."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from connectors.files.identity import Identity

MISSED_SECONDS = 60.0
"""If a listed file can't be opened for this time, it is reported. With a shorter time, brief failures would be reported."""


class ReadFiles:
    """The files that were read, acknowledged or found broken.

    The state is only in memory, and has only files of the folder. After a restart, readings rebuild it.
    """

    def __init__(self) -> None:
        self._broken: dict[str, tuple[Identity, str]] = {}
        self._acknowledged: dict[str, Identity] = {}
        self._read: dict[str, Identity] = {}
        self._unreadable: dict[str, Identity] = {}
        self._begun: dict[str, Identity] = {}
        self._ended: dict[str, Identity] = {}
        self._missed: dict[str, tuple[float, str]] = {}
        self._contents: dict[str, str] = {}
        self._replaced: set[str] = set()

    def keep_only(self, names: Container[str]) -> None:
        """Forget every file that is not among ``names``."""
        self._begun.clear()
        for known in (self._broken, self._acknowledged, self._read, self._ended, self._missed, self._contents):
            for name in [name for name in list(known) if name not in names]:
                del known[name]
        self._replaced = {name for name in self._replaced if name in names}

    def forget(self) -> None:
        """Forget everything, so that every file is read again."""
        self._broken.clear()
        self._acknowledged.clear()
        self._read.clear()
        self._ended.clear()

    def begin(self, name: str, identity: Identity) -> None:
        """Record the identity of the file that is being read. The next `keep_only` forgets this identity."""
        self._begun[name] = identity
        self._missed.pop(name, None)

    def mark_read(self, name: str, identity: Identity) -> None:
        """Record that the file was read in its present state. Its entries may not be acknowledged yet."""
        self._read[name] = identity
        self._missed.pop(name, None)

    def mark_acknowledged(self, name: str, identity: Identity) -> None:
        """Record that all records of the file are acknowledged, and that the file stays in the folder."""
        self._acknowledged[name] = identity

    def mark_removed(self, name: str) -> None:
        """Record that the file left the folder. A new file of this name is read even if its status is equal."""
        for known in (self._broken, self._read, self._ended):
            known.pop(name, None)

    def end(self, name: str, identity: Identity) -> None:
        """Record that this process read the content of the file to its end. The content may not be stored yet."""
        self._ended[name] = identity
        self._replaced.discard(name)

    def has_ended(self, name: str, identity: Identity) -> bool:
        """Return True if this process read the file to its end in this state, and did not remove the file afterwards."""
        return name in self._ended and identity.has_same_content(self._ended[name])

    def remember_content(self, name: str, sha256: str) -> None:
        """Record the hash of the content that was read. For files without a unique status."""
        self._contents[name] = sha256

    @property
    def contents(self) -> Mapping[str, str]:
        """The hashes that `remember_content` recorded, by name."""
        return self._contents

    def mark_replaced(self, name: str) -> None:
        """Forget a file, because a different file now has its name and status.

        The new file is read even if a cursor describes the same status.
        """
        self._replaced.add(name)
        for known in (self._broken, self._acknowledged, self._read, self._ended, self._contents):
            known.pop(name, None)

    def is_replaced(self, name: str) -> bool:
        """Return True if `mark_replaced` recorded the file, and the new file was not read to its end yet."""
        return name in self._replaced

    def mark_broken(self, name: str, identity: Identity | None, reason: str) -> None:
        """Record that the file can't be read in its present state."""
        if identity is not None:
            self._broken[name] = (identity, reason)
            self._missed.pop(name, None)

    def mark_unreadable(self, name: str, identity: Identity) -> None:
        """Record that the format can't read the file's content. `take_unreadable` forgets this."""
        self._unreadable[name] = identity

    def take_unreadable(self, name: str) -> Identity | None:
        """Return the identity that `mark_unreadable` recorded, and forget it; None if there is none."""
        return self._unreadable.pop(name, None)

    def confirm_broken(self, name: str, reason: str) -> None:
        """Record why the reading of a file failed. The reason may come from the mapping, not only from the connector."""
        self.mark_broken(name, self._begun.get(name), reason)

    def mark_missed(self, name: str, elapsed: float, reason: str) -> None:
        """Record that a listed file could not be opened. ``elapsed``: the value of `SourceContext.elapsed`."""
        since, _ = self._missed.get(name, (elapsed, ""))
        self._missed[name] = (since, reason)

    def missed(self, elapsed: float) -> dict[str, str]:
        """Return the files that could not be opened for `MISSED_SECONDS`, each with a sentence. Thread-safe."""
        return {
            name: f"{name} has been in the folder for {elapsed - since:.0f} seconds and can't be read. {reason}"
            for name, (since, reason) in list(self._missed.items())
            if elapsed - since >= MISSED_SECONDS
        }

    def clear_broken(self, name: str) -> None:
        """Allow another reading of a broken file, because something other than the file changed."""
        self._broken.pop(name, None)

    def broken_reason(self, name: str, identity: Identity) -> str | None:
        """Return why the file can't be read, if it is unchanged; else None. Changed permissions count as a change."""
        known = self._broken.get(name)
        return known[1] if known is not None and known[0] == identity else None

    @property
    def broken(self) -> list[str]:
        """The files that can't be read in their present state."""
        return list(self._broken)

    def unknown(self, names: Iterable[str], files: Mapping[str, Identity]) -> list[str]:
        """Return the ``names`` for which `is_known` is False with the identity in ``files``."""
        acknowledged, read = self._acknowledged, self._read
        return [
            name
            for name in names
            # Most files of a folder are unchanged. For an unchanged file, the first two comparisons save a call.
            if files[name] != acknowledged.get(name)
            and files[name] != read.get(name)
            and not self.is_known(name, files[name])
        ]

    def is_known(self, name: str, identity: Identity) -> bool:
        """Return True if reading the file in its present state would yield nothing new."""
        if name in self._read and identity.has_same_content(self._read[name]):
            return True
        return self.is_done(name, identity)

    def is_done(self, name: str, identity: Identity) -> bool:
        """Return True if nothing is left to do: the file is unchanged since it was acknowledged or found broken."""
        if name in self._acknowledged and identity.has_same_content(self._acknowledged[name]):
            return True
        return name in self._broken and self.broken_reason(name, identity) is not None
