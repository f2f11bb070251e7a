"""Files, their versions and metadata in the database."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from workspaced.core.problems import ConflictProblem, ForbiddenProblem
from workspaced.resources.cloud_storage.rules import NewUpload
from workspaced.resources.cloud_storage.values import (
    FileContent,
    FileSpace,
    Given,
    StoredFile,
    StoredOutput,
    StoredVersion,
)
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")


def find_home(reader: ReadTransaction, workspace_id: str) -> FileSpace | None:
    """The workspace, unless it is deleted."""
    row = reader.one(_SQL["find_home"], {"workspace_id": workspace_id})
    return FileSpace._make(row) if row else None


def find_file(reader: ReadTransaction, file_id: str) -> StoredFile | None:
    """The file, whatever has been uploaded, unless it is deleted."""
    row = reader.one(_SQL["find_file"], {"id": file_id})
    return StoredFile._make(row) if row else None


def list_files(reader: ReadTransaction, home: FileSpace) -> list[StoredFile]:
    """The available files of a workspace, oldest first."""
    return [StoredFile._make(row) for row in reader.all(_SQL["list_files"], {"workspace": home.number})]


def list_versions(reader: ReadTransaction, file: StoredFile) -> list[StoredVersion]:
    """Every version, the newest first."""
    return [StoredVersion._make(row) for row in reader.all(_SQL["list_versions"], {"file": file.number})]


def find_version(reader: ReadTransaction, file: StoredFile, version_id: str) -> StoredVersion | None:
    """The version of this file with this id."""
    row = reader.one(_SQL["find_version"], {"file": file.number, "id": version_id})
    return StoredVersion._make(row) if row else None


def list_outputs(reader: ReadTransaction, version: int | None) -> list[StoredOutput]:
    """What the conversion of a version, by its number, made; nothing of None."""
    if version is None:
        return []
    return [StoredOutput._make(row) for row in reader.all(_SQL["outputs_of_version"], {"version": version})]


def locked_home(tx: Transaction, workspace_id: str) -> FileSpace:
    """The workspace, held against others who add to it.

    Raises:
        ForbiddenProblem: there is none (contract C9).
    """
    row = tx.one(_SQL["lock_home"], {"workspace_id": workspace_id})
    if row is None:
        raise ForbiddenProblem
    return FileSpace._make(row)


def target(reader: ReadTransaction, new: NewUpload) -> StoredFile | None:
    """The file that an upload adds a version to; None where it begins one.

    Raises:
        ConflictProblem: the id is that of something else, which is not told (contract G2).
    """
    if new.id is None:
        return None
    file = find_file(reader, new.id)
    if (file is None and reader.one(_SQL["id_in_use"], {"id": new.id})) or (
        file is not None and file.workspace_id != new.workspace_id
    ):
        raise ConflictProblem("id_in_use", "This id is in use.")
    return file


def require_room(
    reader: ReadTransaction, home: FileSpace, file: StoredFile | None, *, size: int, limits: Limits
) -> None:
    """Hold an upload back that would go over a quota (contract G35).

    Raises:
        ConflictProblem: it would.
    """
    if file is None and limits.files_per_workspace:
        row = reader.one(_SQL["count_files"], {"workspace": home.number})
        if row and row[0] >= limits.files_per_workspace:
            raise ConflictProblem("quota_exceeded", f"A workspace may have {limits.files_per_workspace} files.")
    if file is not None and limits.versions_per_file and file.current_version >= limits.versions_per_file:
        raise ConflictProblem("quota_exceeded", f"A file may have {limits.versions_per_file} versions.")
    if limits.file_bytes_per_workspace:
        row = reader.one(_SQL["sum_bytes"], {"workspace": home.number})
        if row and row[0] + size > limits.file_bytes_per_workspace:
            raise ConflictProblem(
                "quota_exceeded", f"The files of a workspace may have {limits.file_bytes_per_workspace} bytes together."
            )


def insert_file(tx: Transaction, home: FileSpace, new: NewUpload, *, file_id: str, actor: str, now: int) -> StoredFile:
    """A file of which nothing was uploaded yet."""
    values = {
        "id": file_id,
        "workspace": home.number,
        "file_name": new.file_name,
        "content_type": new.content_type,
        "actor": actor,
        "now": now,
    }
    tx.run(_SQL["insert_file"], values)
    return _there(tx, file_id)


def add_version(
    tx: Transaction, file: StoredFile, content: FileContent, *, actor: str, now: int
) -> tuple[StoredFile, int]:
    """A version more, which is the current one from now on; the file as it is now, and the version's number."""
    stamped = {"file_name": content.file_name, "content_type": content.content_type, "actor": actor, "now": now}
    taken = tx.one(_SQL["next_version"], {"number": file.number, **stamped})
    if taken is None:
        raise LookupError(f"file {file.id} is not there any more")
    values = {
        "id": str(uuid.uuid4()),
        "file": file.number,
        "ordinal": taken[0],
        "sha256": content.sha256,
        "size": content.size,
        **stamped,
    }
    row = tx.one(_SQL["insert_version"], values)
    if row is None:
        raise LookupError(f"version {taken[0]} of file {file.id} is not there right after it was inserted")
    if not file.available:
        _show_workspace_anew(tx, file, actor=actor, now=now)
    return _there(tx, file.id), int(row[0])


def update_file(tx: Transaction, file: StoredFile, changed: Given, *, actor: str, now: int) -> StoredFile:
    """Give fields other values; the file as it is now."""
    values = {name: getattr(file, name) for name in ("file_name", "content_type", "description", "tags")}
    tx.run(_SQL["update_file"], {**values, **changed, "number": file.number, "actor": actor, "now": now})
    return _there(tx, file.id)


def update_metadata(tx: Transaction, file: StoredFile, metadata: str, *, actor: str, now: int) -> StoredFile:
    """Replace the metadata, a JSON object, whole; the file as it is now."""
    tx.run(_SQL["update_metadata"], {"number": file.number, "metadata": metadata, "actor": actor, "now": now})
    return _there(tx, file.id)


def delete_file(tx: Transaction, file: StoredFile, *, actor: str, now: int) -> None:
    """From now on it is as absent; its bytes are kept until it is purged (contract G25)."""
    tx.run(_SQL["delete_file"], {"number": file.number, "actor": actor, "now": now})
    _show_workspace_anew(tx, file, actor=actor, now=now)


def purge(tx: Transaction, workspace: int, most: int) -> int:
    """Drop files of a workspace that is being purged; how many they were, 0 when none is left."""
    return tx.run(_SQL["purge_workspace"], {"workspace": workspace, "most": most})


def referenced(reader: ReadTransaction, digests: Sequence[str]) -> frozenset[str]:
    """Of these bytes, by their SHA-256, those that a version, an output or an upload names."""
    return frozenset(sha256 for sha256 in digests if reader.one(_SQL["is_referenced"], {"sha256": sha256}))


def _show_workspace_anew(tx: Transaction, file: StoredFile, *, actor: str, now: int) -> None:
    tx.run(_SQL["show_workspace_anew"], {"workspace": file.workspace, "actor": actor, "now": now})


def _there(tx: Transaction, file_id: str) -> StoredFile:
    file = find_file(tx, file_id)
    if file is None:
        raise LookupError(f"file {file_id} is not there right after it was written")
    return file
