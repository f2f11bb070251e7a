"""Acknowledgement: removes a file, its companions and its group once all of it is acknowledged."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable

from connectors.directory.archiver import AcknowledgedFile, Archiver
from connectors.directory.folder_state import FolderState
from connectors.files.identity import Identity
from connectors.filesystem import describe_error
from ingestd.sdk import Cursor, SettleLater, Settlement, SourceUnavailable


class Acknowledger:
    """Removes acknowledged files. The files of a group leave the folder together.

    A crash must leave all files of a group or none: the others would wait forever for a file that was removed.
    """

    def __init__(self, state: FolderState, archiver: Archiver) -> None:
        self._state = state
        self._archiver = archiver
        self._keeps_files = state.options.after == "keep"

    def acknowledge(self, name: str, cursor: Cursor, settlement: Settlement) -> None:
        """Keep, archive or delete the file that the cursor describes, if it still exists unchanged.

        Raises:
            SettleLater: another file of its group is not acknowledged yet, or a grace period has not passed.
            SourceUnavailable: something can't be written or moved.
        """
        readiness = self._state.readiness
        if self._keeps_files or (group := self._state.find_group(name)) is None:
            self._remove(name, cursor, settlement, readiness.companions(name))
            return
        held = self._state.held
        held[name] = (cursor, settlement)
        members = [member for member in group.members if (self._state.folder / member).is_file()]
        if pending := [member for member in members if not self._is_held(member)]:
            raise SettleLater(f"{name} leaves the folder together with {', '.join(pending)}, not acknowledged yet.")
        for member in members:
            self._archiver.check_removable(self._state.path(member), member, held[member][1])
        for number, member in enumerate(members, start=1):
            list_file = [group.companion] if number == len(members) and group.companion else []
            self._remove(member, *held[member], [*readiness.companions(member), *list_file])
        for member in (name, *members):
            held.pop(member, None)

    def _is_held(self, name: str) -> bool:
        """Return True if the file as it is now is acknowledged and waits for the rest of its group."""
        try:
            held = self._state.held.get(name)
            return held is not None and Identity.from_status((self._state.folder / name).stat()).matches_cursor(held[0])
        except OSError:
            return False

    def _remove(self, name: str, cursor: Cursor, settlement: Settlement, companions: Iterable[str]) -> None:
        path = self._state.path(name)
        try:
            identity = Identity.from_status(path.stat())
        except FileNotFoundError:
            return
        except OSError as error:
            raise SourceUnavailable(f"The status of {path} can't be read: {describe_error(error)}") from error
        if not identity.matches_cursor(cursor):
            return
        self._archiver.check_removable(path, name, settlement)
        if not self._keeps_files:
            # Companions come first: a marker without its file would make the next file of that name ready too early.
            for companion in companions:
                self._remove_companion(companion, settlement.ended)
        sha256 = str(cursor["sha256"])
        self._archiver.dispose(
            AcknowledgedFile(path=path, name=name, identity=identity, sha256=sha256, settlement=settlement)
        )
        if self._keeps_files:
            self._state.read_files.mark_acknowledged(name, identity)

    def _remove_companion(self, name: str, ended: float) -> None:
        path = self._state.path(name)
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return
            with path.open("rb") as file:
                identity = Identity.from_status(os.fstat(file.fileno()))
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be read: {describe_error(error)}") from error
        self._archiver.dispose_companion(path, name, identity, sha256, ended)
