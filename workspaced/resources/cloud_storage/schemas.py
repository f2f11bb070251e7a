"""Schemas of files in the OpenAPI document; `workspaced.resources.cloud_storage.rules` is what really judges."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.schema import (
    COUNT,
    FLAG,
    NAME,
    OBJECT,
    STAMP,
    UUID,
    Schema,
    choice,
    given,
    listed,
    nullable,
    record,
    text,
    told,
)
from workspaced.settings.model import Limits

SHA256: Final = "^[0-9A-Fa-f]{64}$"
_DIGEST: Final = text(pattern="^[0-9a-f]{64}$")
_NAME: Final = r"^[^\x00-\x1f\x7f-\x9f/\\]*[^\s\x00-\x1f\x7f-\x9f/\\][^\x00-\x1f\x7f-\x9f/\\]*$"
_WORD: Final = "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_TYPE_LENGTH: Final = 255


def file_name(limits: Limits) -> Schema:
    """A name without a path, and none of the two that mean folders."""
    name = text(shortest=1, longest=limits.file_name_length, pattern=_NAME, about="A name without a path.")
    return {**name, "not": {"enum": [".", ".."]}}


def media_type() -> Schema:
    """A media type as in RFC 9110."""
    parameter = rf'[ \t]*;[ \t]*{_WORD}=({_WORD}|"[\x20-\x21\x23-\x5b\x5d-\x7e]*")'
    return text(longest=_TYPE_LENGTH, pattern=f"^{_WORD}/{_WORD}({parameter})*$")


def schemas(limits: Limits) -> dict[str, Schema]:
    """By their names among the document's components."""
    return {**_records(), **_requests(limits)}


def _records() -> dict[str, Schema]:
    output = {"name": NAME, "contentType": NAME, "size": COUNT, "sha256": _DIGEST}
    conversion = {
        "state": choice("not_required", "pending", "in_progress", "succeeded", "failed"),
        "attempt": COUNT,
        "errorClass": nullable(choice("user", "unsupported", "internal", "timeout")),
        "error": nullable(NAME),
        "startedAt": nullable(STAMP),
        "finishedAt": nullable(STAMP),
        "outputs": listed(record(output)),
    }
    file = {
        "id": UUID,
        "workspaceId": UUID,
        "fileName": NAME,
        "contentType": NAME,
        "size": nullable(COUNT),
        "sha256": nullable(_DIGEST),
        "version": told(COUNT, "How many uploads there were."),
        "versionId": nullable(UUID),
        "status": choice("uploading", "available"),
        "description": nullable(NAME),
        "tags": nullable(NAME),
        "conversion": record(conversion),
        "createdAt": STAMP,
        "updatedAt": STAMP,
        "createdBy": NAME,
        "updatedBy": NAME,
    }
    version = {
        "versionId": UUID,
        "version": COUNT,
        "current": FLAG,
        "fileName": NAME,
        "contentType": NAME,
        "size": COUNT,
        "sha256": _DIGEST,
        "createdAt": STAMP,
        "createdBy": NAME,
    }
    link = {
        "id": told(UUID, "The file."),
        "uploadId": UUID,
        "uploadUrl": NAME,
        "method": choice("PUT"),
        "headers": {"type": "object", "additionalProperties": NAME},
        "expiresAt": STAMP,
        "maxSize": COUNT,
    }
    return {
        "File": record(file),
        "FileVersion": record(version),
        "UploadLink": record(link),
        "Upload": record({"id": UUID, "uploadId": UUID, "size": COUNT, "sha256": _DIGEST}),
    }


def _requests(limits: Limits) -> dict[str, Schema]:
    size: Schema = {"type": "integer", "minimum": 0, "maximum": limits.file_bytes}
    digest = text(pattern=SHA256, about="What the bytes must have.")
    new = {
        "workspaceId": UUID,
        "fileName": file_name(limits),
        "contentType": told(media_type(), "By the name unless given."),
        "size": told(size, "How many bytes will come."),
        "sha256": digest,
        "id": told(UUID, "Of a file that gets another version, or for a new one."),
    }
    changes = given(
        {
            "contentType": told(media_type(), "null: by the name."),
            "description": text(longest=limits.description_length),
            "tags": text(longest=limits.tags_length, about="Separated by commas."),
        }
    )
    changes["properties"]["fileName"] = file_name(limits)
    about = f"Any object of at most {limits.metadata_bytes} bytes, nested {limits.metadata_depth} levels deep."
    return {
        "NewUpload": given(new, required={"workspaceId", "fileName"}),
        "UploadCompletion": given({"uploadId": told(UUID, "The last one unless given."), "sha256": digest}),
        "FileChanges": changes,
        "Metadata": told(OBJECT, about),
        "ConversionRetry": given({"force": told(FLAG, "Stop what is under way, and begin again.")}),
    }
