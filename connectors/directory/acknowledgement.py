"""Acknowledgement: removes a file, its companions and its group once all of it is acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from connectors.directory.archiver import AcknowledgedFile
from connectors.directory.drop_folder import Disposer
from connectors.directory.folder_state import FolderState
from connectors.files.content_proof import is_proof
from connectors.filesystem import describe_error, translate_errors
from ingestd.sdk import AcknowledgeLater, Acknowledgement, Cursor, SourceError, SourceUnavailable


class Acknowledger:
    """Removes acknowledged files. The files of a group leave the folder together.

    A crash must leave all files of a group or none: the others would wait forever for a file that was removed.
    """

    def __init__(self, state: FolderState, archiver: Disposer) -> None:
        self._state = state
        self._archiver = archiver
        self._keeps_files = state.options.after == "keep"

    def acknowledge(self, name: str, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        """Keep, archive or delete the file that the cursor describes, if it still exists unchanged.

        Raises:
            AcknowledgeLater: another file of its group is not acknowledged yet, or a grace period has not passed.
            SourceUnavailable: something can't be written or moved.
        """
        readiness = self._state.readiness
        if self._keeps_files or (group := self._state.find_group(name)) is None:
            self._remove(name, cursor, acknowledgement, readiness.companions(name))
            return
        held = self._state.held
        held[name] = (cursor, acknowledgement)
        members = [member for member in group.members if self._state.drop.kind(member) == "file"]
        if pending := [member for member in members if not self._is_held(member)]:
            raise AcknowledgeLater(
                f"{name} leaves the folder together with {', '.join(pending)}, not acknowledged yet."
            )
        for member in members:
            self._archiver.check_removable(member, held[member][1])
        for number, member in enumerate(members, start=1):
            list_file = [group.companion] if number == len(members) and group.companion else []
            self._remove(member, *held[member], [*readiness.companions(member), *list_file])
        for member in (name, *members):
            held.pop(member, None)

    def acknowledge_together(self, items: Sequence[tuple[str, Cursor, Acknowledgement]]) -> list[Exception | None]:
        """Do what `acknowledge` does for several files; return its error or None for each.

        Files without companions and without a group leave the folder together.
        """
        failures: list[Exception | None] = [None] * len(items)
        files: dict[int, AcknowledgedFile] = {}
        for number, (name, cursor, acknowledgement) in enumerate(items):
            try:
                with translate_errors(self._state.folder / name):
                    is_grouped = not self._keeps_files and self._state.find_group(name) is not None
                    if is_grouped or self._state.readiness.companions(name):
                        self.acknowledge(name, cursor, acknowledgement)
                    elif (file := self._removable(name, cursor, acknowledgement)) is not None:
                        files[number] = file
            except (AcknowledgeLater, SourceError) as error:
                failures[number] = error
        disposed = self._archiver.dispose_together([*files.values()])
        for (number, file), failure in zip(files.items(), disposed, strict=True):
            failures[number] = failure
            if failure is None:
                self._note_kept(file)
        return failures

    def _is_held(self, name: str) -> bool:
        """Return True if the file as it is now is acknowledged and waits for the rest of its group."""
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
            # Companions come first: a marker without its file would make the next file of that name ready too early.
            for companion in companions:
                self._archiver.dispose_companion(companion, acknowledgement.ended)
        self._archiver.dispose(file)
        self._note_kept(file)

    def _note_kept(self, file: AcknowledgedFile) -> None:
        if self._keeps_files:
            self._state.read_files.mark_acknowledged(file.name, file.identity)
        else:
            self._state.read_files.mark_removed(file.name)

    def _removable(self, name: str, cursor: Cursor, acknowledgement: Acknowledgement) -> AcknowledgedFile | None:
        """Return the file that the cursor describes; None if it does not exist any more, or changed."""
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
        if not self._keeps_files and not is_proof(identity) and not self._state.has_content(name, sha256):
            return None
        self._archiver.check_removable(name, acknowledgement)
        return AcknowledgedFile(name=name, identity=identity, sha256=sha256, acknowledgement=acknowledgement)
