"""Acknowledgement: removes a file with its companions, or a group of files after all its files are acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from connectors.directory.drop_folder import Disposer
from connectors.directory.folder_state import FolderState
from connectors.directory.readiness.file_groups import Group
from connectors.files.receipt import AcknowledgedFile
from connectors.filesystem import describe_error, translate_errors
from ingestd.sdk import AcknowledgeLater, Acknowledgement, Cursor, SourceError, SourceUnavailable


class Acknowledger:
    """Removes acknowledged files. Files of a group are removed only after all files of the group are acknowledged.

    If files were removed earlier, the remaining files could wait forever, after a restart, for a removed file.
    """

    def __init__(self, state: FolderState, archiver: Disposer) -> None:
        self._state = state
        self._archiver = archiver
        self._keeps_files = state.options.after == "keep"

    def acknowledge(self, items: Sequence[tuple[str, Cursor, Acknowledgement]]) -> list[Exception | None]:
        """Keep, archive or delete the files that the cursors describe, if they still exist unchanged.

        The result has an error or None for each file. `AcknowledgeLater`: another file of the group is not acknowledged yet,
        or a grace period has not passed. `SourceUnavailable`: a file can't be written or moved. All files that have neither
        companions nor a group are passed to the disposer in one call.
        """
        failures: list[Exception | None] = [None] * len(items)
        files: dict[int, AcknowledgedFile] = {}
        for number, (name, cursor, acknowledgement) in enumerate(items):
            try:
                with translate_errors(self._state.folder / name):
                    companions = self._state.readiness.companions(name)
                    if not self._keeps_files and (group := self._state.find_group(name)) is not None:
                        self._state.held[name] = (cursor, acknowledgement)
                        self._remove_group(name, group)
                    elif companions:
                        self._remove(name, cursor, acknowledgement, companions)
                    elif (file := self._removable(name, cursor, acknowledgement)) is not None:
                        files[number] = file
            except (AcknowledgeLater, SourceError) as error:
                failures[number] = error
        for number, failure in zip(files, self._dispose([*files.values()]), strict=True):
            failures[number] = failure
        return failures

    def _remove_group(self, name: str, group: Group) -> None:
        """Remove the group of the file ``name`` if all files of the group are acknowledged."""
        held = self._state.held
        members = [member for member in group.members if self._state.drop.kind(member) == "file"]
        if pending := [member for member in members if not self._is_held(member)]:
            raise AcknowledgeLater(
                f"{name} leaves the folder together with {', '.join(pending)}, not acknowledged yet."
            )
        for member in members:
            self._check_removable(member, held[member][1])
        for number, member in enumerate(members, start=1):
            list_file = [group.companion] if number == len(members) and group.companion else []
            self._remove(member, *held[member], [*self._state.readiness.companions(member), *list_file])
        for member in (name, *members):
            held.pop(member, None)

    def _is_held(self, name: str) -> bool:
        """Return True if the file in its present state is acknowledged and waits for other files of its group."""
        try:
            held = self._state.held.get(name)
            return held is not None and self._state.drop.file(name).status().matches_cursor(held[0])
        except OSError:
            return False

    def _remove(self, name: str, cursor: Cursor, acknowledgement: Acknowledgement, companions: Iterable[str]) -> None:
        file = self._removable(name, cursor, acknowledgement)
        if file is None:
            return
        if not self._keeps_files:
            # Companions are removed first. A marker that remains would make the next file of this name ready too early.
            for companion in companions:
                self._archiver.dispose_companion(companion, acknowledgement.ended)
        if failure := self._dispose([file])[0]:
            raise failure

    def _dispose(self, files: Sequence[AcknowledgedFile]) -> Sequence[SourceError | None]:
        failures = self._archiver.dispose(files)
        for file, failure in zip(files, failures, strict=True):
            if failure is None and self._keeps_files:
                self._state.read_files.mark_acknowledged(file.name, file.identity)
            elif failure is None:
                self._state.read_files.mark_removed(file.name)
        return failures

    def _removable(self, name: str, cursor: Cursor, acknowledgement: Acknowledgement) -> AcknowledgedFile | None:
        """Return the file that the cursor describes; None if the file no longer exists, or has changed."""
        file = self._state.drop.file(name)
        try:
            identity = file.status()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnavailable(f"The status of {file.path} can't be read: {describe_error(error)}") from error
        if not identity.matches_cursor(cursor):
            return None
        sha256 = str(cursor["sha256"])
        if not self._keeps_files and not identity.is_proof and not self._state.has_content(name, sha256):
            return None
        self._check_removable(name, acknowledgement)
        return AcknowledgedFile(name=name, identity=identity, sha256=sha256, acknowledgement=acknowledgement)

    def _check_removable(self, name: str, acknowledgement: Acknowledgement) -> None:
        grace = self._state.options.delete_grace_seconds
        left = acknowledgement.ended + grace - self._state.context.now()
        if grace and left > 0:
            raise AcknowledgeLater(
                f"{name} is deleted in {left:.0f} seconds if it is unchanged (delete_grace_seconds)."
            )
        if not self._keeps_files:
            self._archiver.check_removable(name, acknowledgement.ended)
