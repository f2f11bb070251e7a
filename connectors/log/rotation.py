"""Rotation: finds the files of a log after renames, copies and packing, and the order in which the files are read.

A file is recognised by device and inode, and only if it still begins with the content that was read. If no file matches, the
file was packed, copied or truncated. Then a rotated file with this content is searched by the hash of the content. The first
bytes alone prove nothing, because all files of one program begin with the same header.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from connectors.files.identity import COMPARED_BYTES, Identity
from connectors.formats.compression import UNPACKING_ERRORS, inner_name, is_disk_error, open_unpacked, packed_suffix
from connectors.log.cursor import CursorPart, LogCursor
from connectors.log.folder import LogFolder
from connectors.log.followed_files import FollowedFiles, find_common_prefix, starts_with
from connectors.log.names import LogNames
from ingestd.sdk import SourceBroken

_ATTEMPTS = 10


class FilesChanging(Exception):
    """Files were renamed or truncated while they were examined. The caller tries again in a moment."""


class MatchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a log, and its part of the cursor. ``name``: the file's present name; empty if the file was not found."""

    part: CursorPart
    name: str


class LogFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a log, in the order of reading. ``lost``: the cursor's last part, if its file was not found."""

    files: tuple[MatchedFile, ...]
    lost: CursorPart | None


class FileMatcher:
    """Matches the parts of a log's cursor with the files in the folder."""

    def __init__(self, folder: LogFolder, names: LogNames, followed: FollowedFiles) -> None:
        self._folder = folder
        self._names = names
        self._followed = followed

    def match(self, log: str, log_cursor: LogCursor) -> LogFiles:
        """Return the files of a log, matched with the parts of its cursor.

        Raises:
            FilesChanging: the files changed during every attempt.
            SourceUnavailable: the folder can't be listed.
            SourceBroken: ingestd has no permission to read a file.
        """
        files = self._candidates(log)
        for _ in range(_ATTEMPTS):
            matched = self._match(log, log_cursor, files)
            now = self._candidates(log)
            if self._is_same_listing(log, files, now):
                return matched
            files = now
        raise FilesChanging

    def _candidates(self, log: str) -> Mapping[str, Identity]:
        """Return the files of this log, and all files that belong to no log: a rotated file may have an unknown name."""
        found = self._folder.files()
        return {name: identity for name, identity in found.items() if self._names.log_of(name) in {log, None}}

    def _match(self, log: str, log_cursor: LogCursor, files: Mapping[str, Identity]) -> LogFiles:
        current = self._names.current(log, files)
        known = self._match_known(current, log_cursor, files)
        claimed = {matched.name for matched in known}
        new: list[MatchedFile] = []
        for name in (*self._names.older(log, files), *([current] if current in files else [])):
            if name in claimed or not files[name].size or _is_being_packed(name, files):
                continue
            moved = self._find_moved(known, name, files[name], whole=True)
            if moved is None and name != current:  # the current file is no copy, even if it has the same beginning
                if self._is_copy(current, name, files, known):
                    continue
                moved = self._find_moved(known, name, files[name], whole=False)
            if moved is not None:
                known[moved[0]] = MatchedFile(part=replace(moved[1], rotated=name != current), name=name)
            else:
                packed = bool(packed_suffix(name))
                device, inode = files[name][:2]
                part = CursorPart(device=device, inode=inode, packed=packed, rotated=name != current)
                new.append(MatchedFile(part=part, name=name))
        last = log_cursor.parts[-1] if log_cursor.parts else None
        is_lost = last is not None and not known[-1].name and last.has_rows and not (last.lost or last.is_complete)
        known = [
            matched if matched.name else MatchedFile(part=replace(matched.part, lost=True), name="")
            for matched in known
        ]
        # The sort moves the current file to the end, and keeps the order of all other files.
        ordered = sorted([*known, *new], key=lambda matched: matched.name == current)
        return LogFiles(files=tuple(ordered), lost=last if is_lost else None)

    def _match_known(self, current: str, log_cursor: LogCursor, files: Mapping[str, Identity]) -> list[MatchedFile]:
        """Return the cursor's files. The name is empty if no file has the inode and the content that were read."""
        by_id = {identity[:2]: name for name, identity in files.items()}
        latest = {part.id: at for at, part in enumerate(log_cursor.parts)}  # a file that was cut keeps its inode
        known: list[MatchedFile] = []
        for at, part in enumerate(log_cursor.parts):
            name = by_id.get(part.id, "") if latest[part.id] == at else ""
            if name and not self._has_same_beginning(part, name, files[name], is_current=name == current):
                self._followed.forget(part.id)
                name = ""
            found = replace(part, lost=False, rotated=name != current) if name else part
            known.append(MatchedFile(part=found, name=name))
        return known

    def _has_same_beginning(self, part: CursorPart, name: str, identity: Identity, *, is_current: bool) -> bool:
        if part.packed != bool(packed_suffix(name)):
            return False
        if part.packed:
            return part.is_unchanged(identity) or (
                not part.done and self._common_prefix(replace(part, marks=()), name, identity) is not None
            )
        is_proven = part.is_unchanged(identity) and identity.is_proof
        if is_proven and not is_current:
            return True
        if identity.size < part.offset:
            return False
        has_same_time = (part.size, part.mtime_ns) == (identity.size, identity.mtime_ns)
        if has_same_time and not is_proven and identity.size < COMPARED_BYTES:
            # The file was renamed, or replaced by a file with equal size and time. So the whole content is compared.
            self._followed.forget(part.id)
        file = self._folder.open(name, identity)
        if file is None:
            raise FilesChanging
        with file:
            return self._followed.prefix(part, file) is not None

    def _find_moved(
        self, known: list[MatchedFile], name: str, identity: Identity, *, whole: bool
    ) -> tuple[int, CursorPart] | None:
        """Return index and new part of the latest lost file that has the content of the file ``name``; None if none has it.

        ``whole``: the file ``name`` must have all content that was read. Otherwise it may be a copy that lacks the last lines.
        """
        for at in reversed(range(len(known))):
            part = known[at].part
            if known[at].name or not part.has_rows:
                continue
            proven = self._common_prefix(replace(part, marks=()) if whole else part, name, identity)
            if proven is not None:
                packed = bool(packed_suffix(name))
                return at, part.move_to(identity, packed=packed, offset=proven[0], sha256=proven[1])
        return None

    def _common_prefix(self, part: CursorPart, name: str, identity: Identity) -> tuple[int, str] | None:
        file = self._folder.open(name, identity)
        if file is None:
            raise FilesChanging
        with file:
            if not packed_suffix(name):
                return find_common_prefix(file, part.offset, part.sha256, part.marks)
            try:
                return find_common_prefix(open_unpacked(file, name), part.offset, part.sha256, ())
            except UNPACKING_ERRORS as error:
                if is_disk_error(error):
                    raise
                return None
            except SourceBroken:
                return None

    def _is_copy(self, current: str, name: str, files: Mapping[str, Identity], known: list[MatchedFile]) -> bool:
        """Return True if a different existing file of the log begins with the whole content of the file ``name``."""
        if packed_suffix(name):
            return False
        existing = {matched.part.id: matched for matched in known if matched.name and not matched.part.packed}
        original = existing.get(self._followed.copies.get(files[name], (0, 0)))
        if original is not None and original.part.offset >= files[name].size:
            return True
        others = [matched.name for matched in existing.values()] + ([current] if current in files else [])
        for other in dict.fromkeys(others):
            if files[other].size < files[name].size:
                continue
            file, other_file = self._folder.open(name, files[name]), self._folder.open(other, files[other])
            if file is None or other_file is None:
                raise FilesChanging
            with file, other_file:
                if starts_with(other_file, file):
                    self._followed.copies[files[name]] = files[other][:2]
                    return True
        return False

    def _is_same_listing(self, log: str, before: Mapping[str, Identity], after: Mapping[str, Identity]) -> bool:
        """Return True if no file of the log was added, removed, renamed or truncated. A file may have grown."""
        then = {name: identity for name, identity in before.items() if self._names.log_of(name) == log}
        now = {name: identity for name, identity in after.items() if self._names.log_of(name) == log}
        if {name: identity[:2] for name, identity in then.items()} != {name: found[:2] for name, found in now.items()}:
            return False
        return all(now[name].size >= identity.size for name, identity in then.items())


def _is_being_packed(name: str, files: Mapping[str, Identity]) -> bool:
    return bool(packed_suffix(name)) and inner_name(name) in files
