"""Files, versions and metadata in the database."""

from __future__ import annotations

import uuid

from workspaced.core.problems import ConflictProblem, ForbiddenProblem, Invalid
from workspaced.http.operations import Call
from workspaced.resources.cloud_storage.rules import NewUpload
from workspaced.resources.cloud_storage.values import (
    ChangedFields,
    FileContent,
    FileWorkspace,
    StoredFile,
    StoredOutput,
    StoredVersion,
)
from workspaced.settings.model import Limits
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")


def find_workspace(reader: ReadTransaction, workspace_id: str) -> FileWorkspace | None:
    """Return the workspace; None: it does not exist, or is deleted."""
    row = reader.one(_SQL["find_workspace"], {"workspace_id": workspace_id})
    return FileWorkspace._make(row) if row else None


def find_file(reader: ReadTransaction, file_id: str) -> StoredFile | None:
    """Return the file, also before its first upload; None: it does not exist, or is deleted."""
    row = reader.one(_SQL["find_file"], {"id": file_id})
    return StoredFile._make(row) if row else None


def list_files(reader: ReadTransaction, workspace: FileWorkspace) -> list[StoredFile]:
    """Return the available files of a workspace, the oldest first."""
    return [StoredFile._make(row) for row in reader.all(_SQL["list_files"], {"workspace": workspace.number})]


def list_versions(reader: ReadTransaction, file: StoredFile) -> list[StoredVersion]:
    """Return every version of a file, the newest first."""
    return [StoredVersion._make(row) for row in reader.all(_SQL["list_versions"], {"file": file.number})]


def find_version(reader: ReadTransaction, file: StoredFile, version_id: str) -> StoredVersion | None:
    """Return the version of a file with this id, if there is one."""
    row = reader.one(_SQL["find_version"], {"file": file.number, "id": version_id})
    return StoredVersion._make(row) if row else None


def list_outputs(reader: ReadTransaction, version: int | None) -> list[StoredOutput]:
    """Return the outputs of the conversion of the version with this number; None: no outputs."""
    if version is None:
        return []
    return [StoredOutput._make(row) for row in reader.all(_SQL["outputs_of_version"], {"version": version})]


def lock_workspace(tx: Transaction, workspace_id: str) -> FileWorkspace:
    """Return the workspace, and lock it against concurrent additions.

    Raises:
        ForbiddenProblem: there is no such workspace (contract C9).
    """
    row = tx.one(_SQL["lock_workspace"], {"workspace_id": workspace_id})
    if row is None:
        raise ForbiddenProblem
    return FileWorkspace._make(row)


def find_target(reader: ReadTransaction, new: NewUpload) -> StoredFile | None:
    """Return the file that gets another version from an upload; None if the upload makes a new file.

    Raises:
        ConflictProblem: another resource has the id; the response does not say which (contract G2).
        Invalid: the upload makes a new file, but has no name.
    """
    if new.id is None:
        return None
    file = find_file(reader, new.id)
    if (file is None and reader.one(_SQL["id_in_use"], {"id": new.id})) or (
        file is not None and file.workspace_id != new.workspace_id
    ):
        raise ConflictProblem("id_in_use", "This id is in use.")
    if file is None and not new.file_name:
        raise Invalid.at("/fileName", "required", "fileName is required for a new file.")
    return file


def require_room(
    reader: ReadTransaction, workspace: FileWorkspace, file: StoredFile | None, *, size: int, limits: Limits
) -> None:
    """Check the quotas before an upload (contract G35). Raises ConflictProblem: the upload would exceed a quota."""
    if file is None and limits.files_per_workspace:
        row = reader.one(_SQL["count_files"], {"workspace": workspace.number})
        if row and row[0] >= limits.files_per_workspace:
            raise ConflictProblem("quota_exceeded", f"A workspace may have {limits.files_per_workspace} files.")
    if file is not None and limits.versions_per_file and file.current_version >= limits.versions_per_file:
        raise ConflictProblem("quota_exceeded", f"A file may have {limits.versions_per_file} versions.")
    if limits.file_bytes_per_workspace:
        row = reader.one(_SQL["sum_bytes"], {"workspace": workspace.number})
        if row and row[0] + size > limits.file_bytes_per_workspace:
            raise ConflictProblem(
                "quota_exceeded", f"The files of a workspace may have {limits.file_bytes_per_workspace} bytes together."
            )


def insert_file(tx: Transaction, call: Call, workspace: FileWorkspace, new: NewUpload, *, file_id: str) -> StoredFile:
    """Insert a file without a version."""
    values = {
        "id": file_id,
        "workspace": workspace.number,
        "file_name": new.file_name,
        "content_type": new.content_type,
        **call.authorship,
    }
    tx.run(_SQL["insert_file"], values)
    return _get(tx, file_id)


def add_version(tx: Transaction, call: Call, file: StoredFile, content: FileContent) -> tuple[StoredFile, int]:
    """Insert a version, which becomes the current version. Return the file afterwards, and the version's number."""
    stamped = {"file_name": content.file_name, "content_type": content.content_type, **call.authorship}
    (ordinal,) = tx.existing(_SQL["next_version"], {"number": file.number, **stamped})
    values = {
        "id": str(uuid.uuid4()),
        "file": file.number,
        "ordinal": ordinal,
        "sha256": content.sha256,
        "size": content.size,
        **stamped,
    }
    (version,) = tx.existing(_SQL["insert_version"], values)
    if not file.available:
        _raise_workspace_version(tx, call, file)
    return _get(tx, file.id), int(version)


def update_file(tx: Transaction, call: Call, file: StoredFile, changed: ChangedFields) -> StoredFile:
    """Write the changed fields, and return the file afterwards."""
    values = {name: getattr(file, name) for name in ("file_name", "content_type", "description", "tags")}
    tx.run(_SQL["update_file"], {**values, **changed, "number": file.number, **call.authorship})
    return _get(tx, file.id)


def update_metadata(tx: Transaction, call: Call, file: StoredFile, metadata: str) -> StoredFile:
    """Replace the metadata, a JSON object, and return the file afterwards."""
    tx.run(_SQL["update_metadata"], {"number": file.number, "metadata": metadata, **call.authorship})
    return _get(tx, file.id)


def delete_file(tx: Transaction, call: Call, file: StoredFile) -> None:
    """Hide a file from every request; its bytes are kept until it is purged (contract G25)."""
    tx.run(_SQL["delete_file"], {"number": file.number, **call.authorship})
    _raise_workspace_version(tx, call, file)


def purge(tx: Transaction, workspace: int, most: int) -> int:
    """Remove up to ``most`` files of a workspace that is being purged. Return how many; 0 if no file is left."""
    return tx.run(_SQL["purge_workspace"], {"workspace": workspace, "most": most})


def _raise_workspace_version(tx: Transaction, call: Call, file: StoredFile) -> None:
    tx.run(_SQL["raise_workspace_version"], {"workspace": file.workspace, **call.authorship})


def _get(tx: Transaction, file_id: str) -> StoredFile:
    return StoredFile._make(tx.existing(_SQL["find_file"], {"id": file_id}))
