"""Why a file is not read as it is now, in a sentence. Looks again, remembers nothing, and may be asked from any thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connectors.directory.options import DirectoryOptions
from connectors.directory.read_files import ReadFiles
from connectors.directory.readiness import Readiness
from connectors.directory.scan import Scanner, is_inside, is_temporary
from connectors.files.identity import Identity
from connectors.files.stability import StabilityTracker
from connectors.formats import PATTERNS
from connectors.mounts import MountGuard
from ingestd.sdk import Cursor, SourceUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """What a connector knows, to explain by."""

    folder: Path
    options: DirectoryOptions
    scanner: Scanner
    guard: MountGuard
    memory: ReadFiles
    stillness: StabilityTracker
    emptiness: StabilityTracker
    readiness: Readiness

    def explain(self, name: str, cursor: Cursor | None, now: float) -> str | None:
        """None where nothing is in the way of the file: it was read, it is gone, or it never was."""
        try:
            self.guard.check()
            found = self.scanner.scan()
        except SourceUnavailable as error:
            return str(error)
        if name in found.refused:
            return f"{name} is not taken: {found.refused[name]}."
        if self.readiness.is_companion(name):
            there = name in found.files or name in found.empty or (self.folder / name).exists()
            return f"{name} belongs to other files and is not read itself (ready)." if there else None
        if name in found.empty:
            return self._empty(name, found.empty[name], now)
        identity = found.files.get(name)
        return self._absent(name) if identity is None else self._present(name, identity, cursor, now)

    def _empty(self, name: str, identity: Identity, now: float) -> str:
        if self.memory.why_broken(name, identity) is not None:
            return f"{name} is parked since it is still empty; it is taken once something is in it."
        left = self.emptiness.seconds_left(name, now)
        late = f", parked if it is still empty in {left:.0f} seconds" if left else ""
        return f"{name} is empty; it is taken once something is in it and stands still{late}."

    def _present(self, name: str, identity: Identity, cursor: Cursor | None, now: float) -> str | None:
        if (reason := self.memory.why_broken(name, identity)) is not None:
            return f"{name} can't be read and stays where it is until it changes. {reason}"
        if identity.is_at(cursor):
            return None
        if self.memory.is_through(name, identity):
            return f"{name} was read, and everything from it is settled."
        return self._waiting(name, self.stillness.seconds_left(name, now))

    def _waiting(self, name: str, left: float | None) -> str:
        if left is None:
            return f"{name} has just arrived; it is considered at the next scan."
        if left > 0:
            return f"{name} must stand still for {left:.1f} more seconds (settle_seconds)."
        if parked := self.readiness.parked(name):
            return f"{name} is about to be parked. {parked}"
        if waits := self.readiness.waits(name):
            return f"{name} stands still, but {waits}."
        return f"{name} stands still: it is being read, or what was read from it is not settled yet."

    def _absent(self, name: str) -> str | None:
        path = self.folder / name
        if not is_inside(path, self.folder) or not path.exists():
            return None
        return f"{name} is not taken: {self._unwanted(name, path)}."

    def _unwanted(self, name: str, path: Path) -> str:
        if not path.is_file():
            return "it is no regular file"
        if is_temporary(name):
            return "a name that begins with . or ~$, or ends in .tmp, .part, .crdownload or .filepart, is temporary or hidden"
        if "/" in name and not self.options.recursive:
            return "it is in a sub-folder, and those are not looked through (recursive)"
        if self.options.pattern == PATTERNS:
            return "its name has no end of a known format; set pattern, and format if needed"
        return f"its name matches none of {self.options.patterns_in_words} (pattern)"
