"""Permissions on files (contract A6, C9). The response is the same for an absent file and for a file without permission."""

from __future__ import annotations

from workspaced.core.problems import ForbiddenProblem, Problem, UnauthenticatedProblem
from workspaced.core.text import as_uuid
from workspaced.http.operations import Call
from workspaced.resources.cloud_storage import store
from workspaced.resources.cloud_storage.values import FileWorkspace, StoredFile
from workspaced.security.permissions import FILES_READ, FILES_WRITE, Principal
from workspaced.storage.port import ReadTransaction


def readable_file(reader: ReadTransaction, call: Call, *, uploading: bool = False) -> StoredFile:
    """Return the file that the path names, if the caller may read it. ``uploading``: accept a file before its first upload.

    Raises:
        UnauthenticatedProblem: the caller has no key, and the file is not public.
        ForbiddenProblem: there is no such file for this caller.
    """
    file = store.find_file(reader, as_uuid(call.names["file"]) or "")
    if file is not None and not (file.available or uploading):
        file = None
    if file is None or not (file.public_can_read or _may(FILES_READ, call, file.workspace_id)):
        raise reading_refusal(call)
    return file


def writable_file(reader: ReadTransaction, call: Call, *, uploading: bool = False) -> StoredFile:
    """Return the file that the path names, if the caller may change it. ``uploading``: accept a file before its first upload.

    Raises:
        ForbiddenProblem: there is no such file for this caller.
    """
    file = store.find_file(reader, as_uuid(call.names["file"]) or "")
    if file is None or not (file.available or uploading) or not _may(FILES_WRITE, call, file.workspace_id):
        raise ForbiddenProblem
    return file


def readable_workspace(reader: ReadTransaction, call: Call, workspace_id: str) -> FileWorkspace:
    """Return the workspace, if the caller may read its files.

    Raises:
        UnauthenticatedProblem: the caller has no key, and the workspace is not public.
        ForbiddenProblem: there is no such workspace for this caller.
    """
    workspace = store.find_workspace(reader, workspace_id)
    if workspace is None or not (workspace.public_can_read or _may(FILES_READ, call, workspace_id)):
        raise reading_refusal(call)
    return workspace


def reading_refusal(call: Call) -> Problem:
    """Return the problem for a caller that may not read: 401 without an API key, else 403."""
    return UnauthenticatedProblem() if call.principal is None else ForbiddenProblem()


def require_writable(call: Call, workspace_id: str) -> Principal:
    """Return the caller, if it may add files to a workspace. Whether the workspace exists is checked later.

    Raises:
        ForbiddenProblem: the caller may not add files.
    """
    if call.principal is None or not _may(FILES_WRITE, call, workspace_id):
        raise ForbiddenProblem
    return call.principal


def _may(scope: str, call: Call, workspace_id: str) -> bool:
    return call.principal is not None and call.principal.may(scope, workspace_id)
