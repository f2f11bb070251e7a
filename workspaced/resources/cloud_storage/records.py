"""Records of files, versions, uploads and conversions (contract C1, C2, C6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from workspaced.core.json_schema import Count, RawObject, Timestamp, Uuid
from workspaced.core.records import record_from
from workspaced.resources.cloud_storage.values import StoredFile, StoredOutput, StoredVersion

Digest: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that a conversion made; `download/{id}?output=<name>` has its bytes."""

    name: str
    content_type: str
    size: Count
    sha256: Digest


class ConversionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The progress of a conversion. `error` is a sentence about the last failed attempt."""

    state: Literal["not_required", "pending", "in_progress", "succeeded", "failed"]
    attempt: Count
    error_class: Literal["user", "unsupported", "internal", "timeout"] | None
    error: str | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    outputs: list[OutputRecord]


class FileRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The storage information of a file. `version` counts uploads; if it is 0, size, sha256 and versionId are null."""

    id: Uuid
    workspace_id: Uuid
    file_name: str
    content_type: str
    size: Count | None
    sha256: Digest | None
    version: Count
    version_id: Uuid | None
    status: Literal["uploading", "available"]
    description: str | None
    tags: str | None
    conversion: ConversionRecord
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    updated_by: str


class FileVersionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One upload of a file; `download/{id}?versionId=<versionId>` has its bytes."""

    version_id: Uuid
    version: Count
    current: bool
    file_name: str
    content_type: str
    size: Count
    sha256: Digest
    created_at: Timestamp
    created_by: str


class UploadLinkRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where to send the bytes of the file `id`: by `method`, once, without an API key, until `expiresAt`."""

    id: Uuid
    upload_id: Uuid
    upload_url: str
    method: Literal["PUT"]
    headers: dict[str, str]
    expires_at: Timestamp
    max_size: Count


class UploadRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Bytes that arrived by a link; they are not visible before upload-complete."""

    id: Uuid
    upload_id: Uuid
    size: Count
    sha256: Digest


class MetadataRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The metadata of a file, in its event."""

    id: Uuid
    workspace_id: Uuid
    metadata: RawObject


def file_record(file: StoredFile, outputs: Sequence[StoredOutput]) -> FileRecord:
    """Return the record of a file, with the outputs of the conversion of its current version."""
    conversion = record_from(
        ConversionRecord,
        file,
        state=file.state or "not_required",
        attempt=file.attempt or 0,
        outputs=[record_from(OutputRecord, output) for output in outputs],
    )
    status = "available" if file.available else "uploading"
    return record_from(FileRecord, file, version=file.current_version, status=status, conversion=conversion)


def version_record(version: StoredVersion, *, current: bool) -> FileVersionRecord:
    """Return the record of a version."""
    return record_from(FileVersionRecord, version, version_id=version.id, version=version.ordinal, current=current)


def metadata_record(file: StoredFile) -> MetadataRecord:
    """Return the metadata as it is stored, so that numbers keep their digits."""
    return record_from(MetadataRecord, file)
