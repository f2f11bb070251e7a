"""Who may do what with files (contract A6, C9): what is absent, foreign or forbidden is refused with the same words."""

from __future__ import annotations

from workspaced.core.problems import ForbiddenProblem, UnauthenticatedProblem
from workspaced.core.text import as_uuid
from workspaced.http.operations import Call
from workspaced.resources.cloud_storage import store
from workspaced.resources.cloud_storage.values import FileSpace, StoredFile
from workspaced.security.permissions import FILES_READ, FILES_WRITE
from workspaced.storage.port import ReadTransaction


def readable_file(reader: ReadTransaction, call: Call, *, uploading: bool = False) -> StoredFile:
    """The file that the path names, for who may read it; ``uploading``: even if nothing was uploaded yet.

    Raises:
        UnauthenticatedProblem: the caller has no key, and the file is not public.
        ForbiddenProblem: there is no such file for this caller.
    """
    file = store.find_file(reader, as_uuid(call.names["file"]) or "")
    if file is not None and not (file.available or uploading):
        file = None
    if call.principal is None:
        if file is None or not file.public_can_read:
            raise UnauthenticatedProblem
        return file
    if file is None or not call.principal.may(FILES_READ, file.workspace_id):
        raise ForbiddenProblem
    return file


def writable_file(reader: ReadTransaction, call: Call, *, uploading: bool = False) -> StoredFile:
    """The file that the path names, for who may change it.

    Raises:
        ForbiddenProblem: there is no such file for this caller.
    """
    file = store.find_file(reader, as_uuid(call.names["file"]) or "")
    if file is None or not (file.available or uploading) or not _may_write(call, file.workspace_id):
        raise ForbiddenProblem
    return file


def readable_home(reader: ReadTransaction, call: Call, workspace_id: str) -> FileSpace:
    """The workspace, for who may read its files.

    Raises:
        UnauthenticatedProblem: the caller has no key, and the workspace is not public.
        ForbiddenProblem: there is no such workspace for this caller.
    """
    home = store.find_home(reader, workspace_id)
    if call.principal is None:
        if home is None or not home.public_can_read:
            raise UnauthenticatedProblem
        return home
    if home is None or not call.principal.may(FILES_READ, workspace_id):
        raise ForbiddenProblem
    return home


def require_writable(call: Call, workspace_id: str) -> None:
    """Let who may add files to a workspace pass; whether it is there is asked within the transaction.

    Raises:
        ForbiddenProblem: the caller may not.
    """
    if not _may_write(call, workspace_id):
        raise ForbiddenProblem


def _may_write(call: Call, workspace_id: str) -> bool:
    return call.principal is not None and call.principal.may(FILES_WRITE, workspace_id)
