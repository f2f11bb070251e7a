"""Uploads by link in the database: offered, received, completed."""

from __future__ import annotations

from workspaced.core.problems import ConflictProblem, UnprocessableProblem
from workspaced.resources.cloud_storage.rules import NewUpload
from workspaced.resources.cloud_storage.values import StoredFile, StoredUpload
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")


def offer(tx: Transaction, file: StoredFile, new: NewUpload, *, upload_id: str, expires_at: int) -> None:
    """An upload that may come until an instant."""
    values = {
        "id": upload_id,
        "file_id": file.id,
        "file_name": new.file_name,
        "content_type": new.content_type,
        "expected_size": new.size,
        "expected_sha256": new.sha256,
        "expires_at": expires_at,
    }
    tx.run(_SQL["insert_upload"], values)


def find(reader: ReadTransaction, upload_id: str) -> StoredUpload | None:
    """The upload, unless its file is deleted."""
    row = reader.one(_SQL["find_upload"], {"id": upload_id})
    return StoredUpload._make(row) if row else None


def require_unused(upload: StoredUpload) -> None:
    """A link is for one upload.

    Raises:
        ConflictProblem: it has come already.
    """
    if upload.sha256 is not None:
        raise ConflictProblem("upload_link_used", "Bytes were sent by this link before: ask for another link.")


def receive(tx: Transaction, upload: StoredUpload, *, sha256: str, size: int, now: int) -> None:
    """The bytes are here.

    Raises:
        ConflictProblem: others came first.
    """
    values = {"number": upload.number, "sha256": sha256, "size": size, "now": now}
    if not tx.run(_SQL["receive_upload"], values):
        require_unused(upload._replace(sha256=sha256))


def to_complete(
    reader: ReadTransaction, file: StoredFile, *, upload_id: str | None, sha256: str | None
) -> StoredUpload:
    """The upload that the caller means: the one that he names, else the newest whose bytes are here.

    One that is completed is found, too, if it is the last: asking twice is harmless.

    Raises:
        ConflictProblem: no bytes have come.
        UnprocessableProblem: those that came are not those that were announced.
    """
    uploads = [StoredUpload._make(row) for row in reader.all(_SQL["uploads_of_file"], {"file": file.number})]
    come = [one for one in uploads if one.sha256 is not None and upload_id in {None, one.id}]
    upload = next((one for one in come if one.completed_at is None), come[0] if come else None)
    if upload is None:
        raise ConflictProblem("not_uploaded", "No bytes have come for this file: send them to uploadUrl first.")
    if upload.expected_size not in {None, upload.size}:
        raise UnprocessableProblem(
            "size_mismatch", f"{upload.expected_size} bytes were announced, and {upload.size} came: upload again."
        )
    for expected in (upload.expected_sha256, sha256):
        if expected not in {None, upload.sha256}:
            raise UnprocessableProblem(
                "sha256_mismatch",
                f"The bytes that came have the SHA-256 {upload.sha256}, not {expected}: upload again.",
            )
    return upload


def complete(tx: Transaction, upload: StoredUpload, *, now: int) -> bool:
    """Whether the upload was not completed before."""
    return bool(tx.run(_SQL["complete_upload"], {"number": upload.number, "now": now}))
