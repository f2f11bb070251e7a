"""What cloud storage shows of itself (contract C1, C2, C6). Every shape stands here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from workspaced.core.timestamps import stamp
from workspaced.resources.cloud_storage.values import StoredFile, StoredOutput, StoredVersion


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that a conversion made; ``download/{id}?output=<name>`` has its bytes."""

    name: str
    content_type: str
    size: int
    sha256: str


class ConversionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far a conversion is. ``error`` is a sentence about the last attempt that failed."""

    state: Literal["not_required", "pending", "in_progress", "succeeded", "failed"]
    attempt: int
    error_class: Literal["user", "unsupported", "internal", "timeout"] | None
    error: str | None
    started_at: str | None
    finished_at: str | None
    outputs: list[OutputRecord]


class FileRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Storage information of a file (contract C2). ``version`` counts uploads; before one, some members are null."""

    id: str
    workspace_id: str
    file_name: str
    content_type: str
    size: int | None
    sha256: str | None
    version: int
    version_id: str | None
    status: Literal["uploading", "available"]
    description: str | None
    tags: str | None
    conversion: ConversionRecord
    created_at: str
    updated_at: str
    created_by: str
    updated_by: str


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One upload of a file; ``download/{id}?versionId=<versionId>`` has its bytes."""

    version_id: str
    version: int
    current: bool
    file_name: str
    content_type: str
    size: int
    sha256: str
    created_at: str
    created_by: str


class UploadLinkRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where to send the bytes of the file ``id``: by ``method``, once, without an API key, until ``expiresAt``."""

    id: str
    upload_id: str
    upload_url: str
    method: Literal["PUT"]
    headers: dict[str, str]
    expires_at: str
    max_size: int


class UploadRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What arrived by a link; nobody sees it before upload-complete."""

    id: str
    upload_id: str
    size: int
    sha256: str


class MetadataRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The metadata of a file as its event shows it."""

    id: str
    workspace_id: str
    metadata: msgspec.Raw


def file_record(file: StoredFile, outputs: Sequence[StoredOutput]) -> FileRecord:
    """A file with what the conversion of its current version made."""
    return FileRecord(
        id=file.id,
        workspace_id=file.workspace_id,
        file_name=file.file_name,
        content_type=file.content_type,
        size=file.size,
        sha256=file.sha256,
        version=file.current_version,
        version_id=file.version_id,
        status="available" if file.available else "uploading",
        description=file.description,
        tags=file.tags,
        conversion=_conversion(file, outputs),
        created_at=stamp(file.created_at),
        updated_at=stamp(file.updated_at),
        created_by=file.created_by,
        updated_by=file.updated_by,
    )


def _conversion(file: StoredFile, outputs: Sequence[StoredOutput]) -> ConversionRecord:
    return ConversionRecord(
        state=file.state or "not_required",  # type: ignore[arg-type]  # the store holds no other
        attempt=file.attempt or 0,
        error_class=file.error_class,  # type: ignore[arg-type]  # likewise
        error=file.error,
        started_at=_instant(file.started_at),
        finished_at=_instant(file.finished_at),
        outputs=[
            OutputRecord(name=one.name, content_type=one.content_type, size=one.size, sha256=one.sha256)
            for one in outputs
        ],
    )


def version_record(version: StoredVersion, *, current: bool) -> VersionRecord:
    """A version of a file."""
    return VersionRecord(
        version_id=version.id,
        version=version.ordinal,
        current=current,
        file_name=version.file_name,
        content_type=version.content_type,
        size=version.size,
        sha256=version.sha256,
        created_at=stamp(version.created_at),
        created_by=version.created_by,
    )


def metadata_record(file: StoredFile) -> MetadataRecord:
    """The metadata, with the digits of its numbers."""
    return MetadataRecord(id=file.id, workspace_id=file.workspace_id, metadata=msgspec.Raw(file.metadata.encode()))


def _instant(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else stamp(milliseconds)
