"""Cloud storage's section of the API description; `workspaced.resources.cloud_storage.rules` is what validates."""

from __future__ import annotations

from typing import Final

from workspaced.http.openapi.description import ApiSection, Body, Link, OperationDescription, Parameter, Success
from workspaced.http.openapi.schema import NAME, OBJECT, UUID, listed, ref, text
from workspaced.http.openapi.shared import LISTED, paging
from workspaced.resources.cloud_storage.file_routes import SORTABLE, SORTABLE_VERSIONS
from workspaced.resources.cloud_storage.schemas import SHA256, file_name, media_type, schemas
from workspaced.settings.model import Limits

_FILE: Final = Parameter(name="id", description="The file.", schema=UUID)
_UPLOAD: Final = Parameter(name="uploadId", description="The upload that the link is for.", schema=UUID)
_WORKSPACE: Final = Parameter(name="workspaceId", description="The workspace.", schema=UUID, required=True)
_ABOUT: Final = """\
Files belong to a workspace. Bytes come by a signed link in three steps (`upload-link`, PUT, `upload-complete`) or in one
request; each upload is a version. What a file is converted to can be downloaded as its outputs.

A file that is not there is refused like one that the caller may not see: 403.
"""
_OF_FILE: Final = {"id": "$response.body#/id"}
_ROOM: Final = "`id_in_use`: the id is taken. `quota_exceeded`: there is no room for more."
_FULL: Final = "`storage_full`, `storage_failed`: the bytes can't be kept."
_RAW: Final = "application/octet-stream"
_FOLLOWING: Final = {
    "get": "get",
    "getMetadata": "get_metadata",
    "replaceMetadata": "replace_metadata",
    "update": "update",
    "listVersions": "list_versions",
    "download": "download",
    "retryConversion": "retry_conversion",
}


def api_section(limits: Limits) -> ApiSection:
    """The document's five rows, and how files come to exist and are read."""
    return ApiSection(
        title="Cloud storage",
        description=_ABOUT,
        operations=(*_reads(limits), _download(), *_changes(), *_uploads(limits)),
        path={"file": _FILE, "upload": _UPLOAD},
        schemas=schemas(limits),
    )


def _reads(limits: Limits) -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            name="cloud_storage.list",
            summary="List files",
            description="The files of a workspace, the oldest first.",
            query=(_WORKSPACE, *paging(limits, SORTABLE)),
            success=(Success(description="The files.", schema=listed(ref("File")), headers=LISTED),),
        ),
        OperationDescription(
            name="cloud_storage.get",
            summary="Get a file's storage information",
            description="Also of a file that is still to be uploaded.",
            success=(Success(description="The file.", schema=ref("File"), headers=("ETag",)),),
            etag=True,
        ),
        OperationDescription(
            name="cloud_storage.list_versions",
            summary="List the versions of a file",
            description="Every upload of the file, the newest first.",
            query=paging(limits, SORTABLE_VERSIONS, order="DESC"),
            success=(Success(description="The versions.", schema=listed(ref("FileVersion")), headers=LISTED),),
        ),
        OperationDescription(
            name="cloud_storage.get_metadata",
            summary="Get a file's metadata",
            description="The object that users keep with the file; `{}` at first.",
            success=(Success(description="The metadata.", schema=OBJECT, headers=("ETag",)),),
            etag=True,
        ),
    )


def _download() -> OperationDescription:
    headers = ("ETag", "Disposition", "Ranges")
    return OperationDescription(
        name="cloud_storage.download",
        summary="Download a file",
        description="The bytes of the current version, of another one, or of an output of the conversion.",
        query=(
            Parameter(name="versionId", description="Another version than the current one.", schema=UUID),
            Parameter(name="output", description="An output of the conversion, by its name.", schema=NAME),
        ),
        success=(
            Success(description="The bytes.", schema={}, media="*/*", headers=headers),
            Success(
                status=206, description="The range of them.", schema={}, media="*/*", headers=(*headers, "ContentRange")
            ),
        ),
        refusals={
            403: "`exports_disabled`: the workspace gives no files away.",
            412: "If-Match names other bytes.",
            416: "`range_not_satisfiable`: it begins after the end.",
            503: "`bytes_missing`, `storage_failed`: the bytes can't be read.",
        },
        etag=True,
        headers=("IfMatch", "Range", "IfRange"),
    )


def _changes() -> tuple[OperationDescription, ...]:
    return (
        OperationDescription(
            name="cloud_storage.update",
            summary="Change a file's storage information",
            description="Only the members that are given change.",
            body=Body(schema=ref("FileChanges"), example={"description": "As measured"}, required=False),
            success=(Success(description="Done."),),
            etag=True,
        ),
        OperationDescription(
            name="cloud_storage.delete",
            summary="Delete a file",
            description="The query must name the file's workspace.",
            query=(_WORKSPACE,),
            success=(Success(description="It is gone."),),
            etag=True,
        ),
        OperationDescription(
            name="cloud_storage.replace_metadata",
            summary="Replace a file's metadata",
            description="The whole object; without a body it stays as it is.",
            body=Body(schema=ref("Metadata"), example={"material": "AlSi10Mg"}, required=False),
            success=(Success(description="Done."),),
            etag=True,
        ),
        OperationDescription(
            name="cloud_storage.retry_conversion",
            summary="Convert a file again",
            description="What is pending or under way is not begun twice, unless `force` is true.",
            body=Body(schema=ref("ConversionRetry"), example={"force": True}, required=False),
            success=(Success(description="It is pending."),),
        ),
    )


def _uploads(limits: Limits) -> tuple[OperationDescription, ...]:
    raw = Body(schema={}, example=None, media=_RAW)
    links = {
        name: Link(operation=f"cloud_storage.{operation}", parameters=_OF_FILE)
        for name, operation in _FOLLOWING.items()
    }
    return (
        OperationDescription(
            name="cloud_storage.upload_link",
            summary="Ask for an upload link",
            description="Announces a file, or another version of one; the link holds once, and for some minutes.",
            body=Body(
                schema=ref("NewUpload"),
                example={"workspaceId": "0f8b3c0e-6f3c-4b57-9f3e-2a1f4d7f9f10", "fileName": "masses.csv"},
            ),
            success=(
                Success(
                    status=201,
                    description="Where to send the bytes.",
                    schema=ref("UploadLink"),
                    headers=("Location", "Cache"),
                    links={"get": Link(operation="cloud_storage.get", parameters=_OF_FILE)},
                ),
            ),
            refusals={409: _ROOM},
        ),
        OperationDescription(
            name="cloud_storage.receive",
            summary="Send bytes by a link",
            description=(
                "The body is the file, of any type. Packed with gzip, it is stored unpacked. Needs no key: the link is signed."
            ),
            query=(
                Parameter(name="expires", description="As in the link.", schema=NAME, required=True),
                Parameter(name="signature", description="As in the link.", schema=NAME, required=True),
            ),
            body=raw,
            success=(Success(description="What arrived.", schema=ref("Upload")),),
            refusals={
                403: "`bad_upload_link`, `upload_link_expired`, or the file is gone.",
                409: "`upload_link_used`: bytes have come by this link.",
                503: _FULL,
            },
        ),
        OperationDescription(
            name="cloud_storage.upload_complete",
            summary="Complete an upload",
            description="Makes what was sent by a link the file's current version.",
            body=Body(schema=ref("UploadCompletion"), example={}, required=False),
            success=(Success(description="The file.", schema=ref("File"), headers=("ETag",), links=links),),
            refusals={
                409: "`quota_exceeded`: there is no room for more. `not_uploaded`: nothing has been sent yet.",
                422: "`sha256_mismatch`, `size_mismatch`: other bytes came.",
            },
        ),
        OperationDescription(
            name="cloud_storage.upload",
            summary="Upload a file",
            description=(
                "A file, or another version of one, in one request: the body is its bytes, of any type. Packed with gzip, they "
                "are stored unpacked."
            ),
            query=(
                _WORKSPACE,
                Parameter(name="fileName", description="Its name.", schema=file_name(limits), required=True),
                Parameter(name="contentType", description="Its type; else the header's.", schema=media_type()),
                Parameter(name="id", description="Of a file that gets another version.", schema=UUID),
                Parameter(name="sha256", description="What the bytes must have.", schema=text(pattern=SHA256)),
            ),
            body=raw,
            success=(
                Success(
                    status=201, description="The file.", schema=ref("File"), headers=("ETag", "Location"), links=links
                ),
            ),
            refusals={409: _ROOM, 503: _FULL, 422: "`sha256_mismatch`: other bytes came."},
        ),
    )
