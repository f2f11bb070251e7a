"""Files of cloud storage (contract C1, C2, C6)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ingestd.client.records.base import Record, Versioned


class ConversionOutput(Record, frozen=True, kw_only=True):
    """A file that a conversion made; ``iter_file(…, output=name)`` returns its bytes."""

    name: str
    content_type: str
    size: int
    sha256: str


class Conversion(Record, frozen=True, kw_only=True):
    """The state of a file's conversion; ``error`` is of the last failed attempt."""

    state: Literal["not_required", "pending", "in_progress", "succeeded", "failed"]
    attempt: int
    error_class: Literal["user", "unsupported", "internal", "timeout"] | None
    error: str | None
    started_at: datetime | None
    finished_at: datetime | None
    outputs: tuple[ConversionOutput, ...]


class FileInfo(Versioned, frozen=True, kw_only=True):
    """A file without its bytes. ``version`` counts uploads; before the first, ``size`` (bytes) and ``sha256`` are None."""

    id: str
    workspace_id: str
    file_name: str
    content_type: str
    size: int | None
    sha256: str | None
    version: int
    version_id: str | None = None
    status: Literal["uploading", "available"]
    description: str | None
    tags: str | None
    conversion: Conversion
    created_at: datetime
    updated_at: datetime
    created_by: str
    updated_by: str


class FileVersion(Record, frozen=True, kw_only=True):
    """One upload of a file; ``iter_file(…, version_id=…)`` returns its bytes."""

    version_id: str
    version: int
    current: bool
    file_name: str
    content_type: str
    size: int
    sha256: str
    created_at: datetime
    created_by: str


class UploadLink(Record, frozen=True, kw_only=True):
    """An address for the bytes of a file, valid once until ``expires_at``. Its URL is a secret, so ``repr`` hides it."""

    id: str
    upload_id: str | None = None
    upload_url: str
    method: Literal["PUT"]
    headers: dict[str, str]
    expires_at: datetime
    max_size: int

    def __repr__(self) -> str:
        return f"UploadLink(id={self.id!r}, expires_at={self.expires_at!r}, max_size={self.max_size})"


class Upload(Record, frozen=True, kw_only=True):
    """The bytes that arrived by a link. ``complete_upload`` makes them the file's."""

    id: str
    upload_id: str
    size: int
    sha256: str
