"""Rows of files, versions, uploads and outputs. Instants are milliseconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

ChangedFields: TypeAlias = Mapping[str, str | None]
"""New values of fields of a file, by field name: file_name, content_type, description, tags."""


class FileWorkspace(NamedTuple):
    """The part of a workspace's row that its files need."""

    number: int
    id: str
    public_can_read: int
    exports_enabled: int


class StoredFile(NamedTuple):
    """A row of a file with its current version and conversion.

    Before the first upload, ``current_version`` is 0, and the fields after ``updated_by`` are None.
    """

    number: int
    id: str
    workspace: int
    workspace_id: str
    public_can_read: int
    exports_enabled: int
    file_name: str
    content_type: str
    description: str | None
    tags: str | None
    metadata: str
    current_version: int
    version: int
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str
    version_number: int | None
    version_id: str | None
    sha256: str | None
    size: int | None
    conversion: int | None
    state: str | None
    attempt: int | None
    error_class: str | None
    error: str | None
    started_at: int | None
    finished_at: int | None

    @property
    def available(self) -> bool:
        """Whether there are bytes to download."""
        return self.current_version > 0


class StoredVersion(NamedTuple):
    """A row of a version."""

    number: int
    id: str
    ordinal: int
    file_name: str
    content_type: str
    sha256: str
    size: int
    created_at: int
    created_by: str


class StoredUpload(NamedTuple):
    """A row of an upload by link. ``key_id``: the key that requested the link. ``secret``: the digest of the key's secret."""

    number: int
    id: str
    file_id: str
    file_name: str
    content_type: str
    expected_size: int | None
    expected_sha256: str | None
    expires_at: int
    sha256: str | None
    size: int | None
    received_at: int | None
    completed_at: int | None
    workspace_id: str
    key_id: str
    secret: bytes


class StoredOutput(NamedTuple):
    """A row of a file that a conversion made."""

    name: str
    content_type: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """Stored bytes, with their file name and media type."""

    file_name: str
    content_type: str
    sha256: str
    size: int
