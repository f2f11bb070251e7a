"""Which file is which: those that were read under their present names, and those that are new, in the order of their writing.

A file is known by device and inode, and only if it still begins with what was read of it. What is not found that way was
packed, copied or cut; it is looked for among the rotated files by the hash of what was read. The first bytes alone prove
nothing: every file of one system begins with the same header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from connectors.files import Identity
from connectors.formats.compression import UNPACKING_ERRORS, inner_name, open_unpacked, packed_suffix
from connectors.log.cursor import CursorPart, LogCursor
from connectors.log.folder import Folder
from connectors.log.followed_files import FollowedFiles
from connectors.log.names import LogNames
from connectors.log.prefix import find_common_prefix, holds
from ingestd.sdk import SourceBroken

_LOOKS = 10


class FilesChanging(Exception):
    """Files were renamed or cut while they were looked at: look again in a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedFile:
    """A file to be read from its part's offset on; ``name`` is empty where there is no such file any more."""

    part: CursorPart
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFiles:
    """``found`` in the order in which they are read; ``missed``: of what was read last, nothing could be found."""

    found: tuple[MatchedFile, ...]
    missed: CursorPart | None


class FileMatcher:
    """Compares what was read of a log with what is in its folder."""

    def __init__(self, folder: Folder, names: LogNames, memory: FollowedFiles) -> None:
        self._folder = folder
        self._names = names
        self._memory = memory

    def arrange(self, log: str, trail: LogCursor) -> LogFiles:
        """The files of a log.

        Raises:
            FilesChanging: they do not keep still.
            SourceUnavailable: the folder can't be listed.
            SourceBroken: a file may not be read.
        """
        files = self._files(log)
        for _ in range(_LOOKS):
            arrangement = self._arrange(log, trail, files)
            now = self._files(log)
            if self._same(log, files, now):
                return arrangement
            files = now
        raise FilesChanging

    def _files(self, log: str) -> Mapping[str, Identity]:
        """Those that are the log's or nobody's: a file that was renamed in another way than configured is found, too."""
        found = self._folder.files()
        return {name: identity for name, identity in found.items() if self._names.log_of(name) in {log, None}}

    def _arrange(self, log: str, trail: LogCursor, files: Mapping[str, Identity]) -> LogFiles:
        by_id = {identity[:2]: name for name, identity in files.items()}
        latest = {part.id: at for at, part in enumerate(trail.parts)}  # a file that was cut has its inode still
        found: list[MatchedFile] = []
        for place, part in enumerate(trail.parts):
            name = by_id.get(part.id, "") if latest[part.id] == place else ""
            if name and not self._stands(part, name, files[name], log):
                self._memory.forget(part.id)
                name = ""
            found.append(MatchedFile(part=replace(part, lost=False, rotated=name != log) if name else part, name=name))
        claimed = {known.name for known in found}
        fresh: list[MatchedFile] = []
        for name in (*self._names.older(log, files), *([log] if log in files else [])):
            if name in claimed or not files[name].size or self._is_being_packed(name, files):
                continue
            adopted = self._adopts(found, name, files[name], whole=True)
            if adopted is None and name != log:  # what is being written is no copy, it only begins alike
                if self._is_copy(log, name, files, found):
                    continue
                adopted = self._adopts(found, name, files[name], whole=False)
            if adopted is not None:
                found[adopted[0]] = MatchedFile(part=replace(adopted[1], rotated=name != log), name=name)
            else:
                packed = bool(packed_suffix(name))
                device, inode = files[name][:2]
                part = CursorPart(device=device, inode=inode, packed=packed, rotated=name != log)
                fresh.append(MatchedFile(part=part, name=name))
        last = trail.parts[-1] if trail.parts else None
        gone = last is not None and not found[-1].name and last.has_rows and not (last.lost or last.is_through)
        found = [known if known.name else MatchedFile(part=replace(known.part, lost=True), name="") for known in found]
        everything = [*found, *fresh]
        everything.sort(key=lambda known: known.name == log)  # stable: what is being written comes last
        return LogFiles(found=tuple(everything), missed=last if gone else None)

    def _stands(self, part: CursorPart, name: str, identity: Identity, log: str) -> bool:
        if part.packed != bool(packed_suffix(name)):
            return False
        if part.packed:
            return part.is_quiet(identity) or (
                not part.done and self._common(replace(part, marks=()), name, identity) is not None
            )
        if name != log and part.is_quiet(identity):
            return True
        if identity.size < part.offset:
            return False
        file = self._folder.open(name, identity)
        if file is None:
            raise FilesChanging
        with file:
            return self._memory.prefix(part, file) is not None

    def _is_being_packed(self, name: str, files: Mapping[str, Identity]) -> bool:
        return bool(packed_suffix(name)) and inner_name(name) in files

    def _adopts(
        self, found: list[MatchedFile], name: str, identity: Identity, *, whole: bool
    ) -> tuple[int, CursorPart] | None:
        """The lost file, the latest first, whose content is in this one now.

        All that was read of it (``whole``), or some: a copy may have been made before the last lines came.
        """
        for at in reversed(range(len(found))):
            part = found[at].part
            if found[at].name or not part.has_rows:
                continue
            proven = self._common(replace(part, marks=()) if whole else part, name, identity)
            if proven is not None:
                packed = bool(packed_suffix(name))
                return at, part.moved(identity, packed=packed, offset=proven[0], sha256=proven[1])
        return None

    def _common(self, part: CursorPart, name: str, identity: Identity) -> tuple[int, str] | None:
        file = self._folder.open(name, identity)
        if file is None:
            raise FilesChanging
        with file:
            if not packed_suffix(name):
                return find_common_prefix(file, part.offset, part.sha256, part.marks)
            try:
                return find_common_prefix(open_unpacked(file, name), part.offset, part.sha256, ())
            except UNPACKING_ERRORS as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                return None
            except SourceBroken:
                return None

    def _is_copy(self, log: str, name: str, files: Mapping[str, Identity], others: list[MatchedFile]) -> bool:
        """Whether another file of the log, which still stands, begins with all that is in this one."""
        if packed_suffix(name):
            return False
        standing = {other.part.id: other for other in others if other.name and not other.part.packed}
        known = standing.get(self._memory.copies.get(files[name], (0, 0)))
        if known is not None and known.part.offset >= files[name].size:
            return True
        for other in dict.fromkeys([*(found.name for found in standing.values()), *([log] if log in files else [])]):
            if files[other].size < files[name].size:
                continue
            ours, theirs = self._folder.open(name, files[name]), self._folder.open(other, files[other])
            if ours is None or theirs is None:
                raise FilesChanging
            with ours, theirs:
                if holds(theirs, ours):
                    self._memory.copies[files[name]] = files[other][:2]
                    return True
        return False

    def _same(self, log: str, before: Mapping[str, Identity], after: Mapping[str, Identity]) -> bool:
        """Whether no file of the log was renamed, cut or written but at its end."""
        ours = {name: identity for name, identity in before.items() if self._names.log_of(name) == log}
        theirs = {name: identity for name, identity in after.items() if self._names.log_of(name) == log}
        if {name: identity[:2] for name, identity in ours.items()} != {name: now[:2] for name, now in theirs.items()}:
            return False
        return all(theirs[name].size >= identity.size for name, identity in ours.items())
