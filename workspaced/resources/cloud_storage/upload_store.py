"""Uploads by link in the database. An upload is announced, then received, then completed."""

from __future__ import annotations

from workspaced.core.problems import ConflictProblem, UnprocessableProblem
from workspaced.resources.cloud_storage.rules import NewUpload
from workspaced.resources.cloud_storage.values import StoredFile, StoredUpload
from workspaced.security.permissions import Principal
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.cloud_storage", "queries.sql")


def insert_upload(
    tx: Transaction, file: StoredFile, new: NewUpload, *, upload_id: str, expires_at: int, by: Principal
) -> None:
    """Insert an upload. Its link is valid until ``expires_at`` (milliseconds since 1970), as long as the API key is valid."""
    values = {
        "id": upload_id,
        "file_id": file.id,
        "file_name": new.file_name,
        "content_type": new.content_type,
        "expected_size": new.size,
        "expected_sha256": new.sha256,
        "expires_at": expires_at,
        "key_id": by.key_id,
        "secret": by.secret,
    }
    tx.run(_SQL["insert_upload"], values)


def find(reader: ReadTransaction, upload_id: str) -> StoredUpload | None:
    """Return the upload, if there is one and its file is not deleted."""
    row = reader.one(_SQL["find_upload"], {"id": upload_id})
    return StoredUpload._make(row) if row else None


def require_unused(upload: StoredUpload) -> None:
    """Check that no bytes were received by the link. Raises ConflictProblem: bytes were received."""
    if upload.sha256 is not None:
        raise ConflictProblem("upload_link_used", "Bytes were sent to this link before: request another link.")


def record_bytes(tx: Transaction, upload: StoredUpload, *, sha256: str, size: int, now: int) -> None:
    """Record that the bytes of an upload were received.

    Raises:
        ConflictProblem: a concurrent upload by the same link was recorded first.
    """
    values = {"number": upload.number, "sha256": sha256, "size": size, "now": now}
    if not tx.run(_SQL["receive_upload"], values):
        require_unused(upload._replace(sha256=sha256))


def find_received(
    reader: ReadTransaction, file: StoredFile, *, upload_id: str | None, sha256: str | None
) -> StoredUpload:
    """Return the upload to complete: the upload with this id; without an id, the upload that was received last.

    The upload may be completed already. Then another completion has no effect: no earlier upload replaces it.

    Raises:
        ConflictProblem: no bytes were received.
        UnprocessableProblem: the received bytes have another size or SHA-256 than announced.
    """
    uploads = [StoredUpload._make(row) for row in reader.all(_SQL["uploads_of_file"], {"file": file.number})]
    received = [one for one in uploads if one.sha256 is not None and upload_id in {None, one.id}]
    upload = max(received, key=lambda one: (one.received_at or 0, one.number), default=None)
    if upload is None:
        raise ConflictProblem("not_uploaded", "No bytes were received for this file: send them to uploadUrl first.")
    if upload.expected_size not in {None, upload.size}:
        raise UnprocessableProblem(
            "size_mismatch",
            f"{upload.expected_size} bytes were announced, and {upload.size} were received: upload again.",
        )
    for expected in (upload.expected_sha256, sha256):
        if expected not in {None, upload.sha256}:
            raise UnprocessableProblem(
                "sha256_mismatch",
                f"The received bytes have the SHA-256 {upload.sha256}, not {expected}: upload again.",
            )
    return upload


def complete(tx: Transaction, upload: StoredUpload, *, now: int) -> bool:
    """Mark an upload as completed. Return False if it was completed before."""
    return bool(tx.run(_SQL["complete_upload"], {"number": upload.number, "now": now}))
