"""The members of the bodies and queries of files (contract C1, C3, C4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from mimetypes import MimeTypes
from typing import Annotated, Any, Final

import msgspec

from workspaced.core.bodies import Body, read_body
from workspaced.core.json_body import is_deeper
from workspaced.core.json_schema import Schema, string
from workspaced.core.members import Flag, Identifier, Info, Text, Whole, bound, rejected
from workspaced.core.problems import Invalid
from workspaced.core.text import as_uuid
from workspaced.settings.model import Limits

UNKNOWN_TYPE: Final = "application/octet-stream"
# Types that curl and HTML forms send if the type of the bytes is unknown.
_UNSPECIFIC_TYPES = frozenset({"", "application/x-www-form-urlencoded"})
_WORD = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_MEDIA_TYPE = re.compile(rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"[\x20-\x21\x23-\x5b\x5d-\x7e]*"))*')
_NAME = r"^[^\x00-\x1f\x7f-\x9f/\\]*[^\s\x00-\x1f\x7f-\x9f/\\][^\x00-\x1f\x7f-\x9f/\\]*$"
_CANONICAL = msgspec.json.Encoder(decimal_format="number", order="sorted")
# Only the table of the standard library: with the tables of the machine, the type of a name could differ between machines.
_BY_NAME = MimeTypes(filenames=())
for _ending, _type in (
    (".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (".xlsm", "application/vnd.ms-excel.sheet.macroenabled.12"),
    (".ods", "application/vnd.oasis.opendocument.spreadsheet"),
    (".parquet", "application/vnd.apache.parquet"),
    (".webp", "image/webp"),
    (".md", "text/markdown"),
    (".step", "model/step"),
    (".stp", "model/step"),
    (".stl", "model/stl"),
):
    _BY_NAME.add_type(_type, _ending)


@dataclass(frozen=True, kw_only=True)
class FileName(Text):
    """A file name without a path: no slash or backslash, and neither ``.`` nor ``..``."""

    longest: int | str = "file_name_length"
    one_line: bool = True
    trimmed: bool = True
    description: str = "A name without a path."

    def absent(self, *, null: bool) -> tuple[str, str]:
        """Return the mistake for a missing name; null in an update counts as missing."""
        del null
        return super().absent(null=False)

    def _check(self, value: Any, info: Info) -> Any:
        name = super()._check(value, info)
        if name == "":
            raise rejected("blank", "can't be blank")
        if "/" in name or "\\" in name or name in {".", ".."}:
            raise rejected("bad_file_name", "must be a name without a path: no / and no \\, not . and not ..")
        return name

    def _form(self, limits: Any) -> Schema:
        schema = string(shortest=1, longest=bound(limits, self.longest), pattern=_NAME)
        return {**schema, "not": {"enum": [".", ".."]}}


@dataclass(frozen=True, kw_only=True)
class MediaType(Text):
    """A media type (RFC 9110)."""

    longest: int | str = 255
    exact: bool = True
    pattern: re.Pattern[str] | None = _MEDIA_TYPE
    mistake: tuple[str, str] = ("bad_media_type", "must be a media type like text/csv")


@dataclass(frozen=True, kw_only=True)
class Sha256(Text):
    """A SHA-256 in hexadecimal digits, which is converted to lower case."""

    longest: int | str = 64
    pattern: re.Pattern[str] | None = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
    mistake: tuple[str, str] = ("bad_sha256", "must have 64 hexadecimal digits")
    description: str = "The SHA-256 that the bytes must have."

    def _check(self, value: Any, info: Info) -> Any:
        text: str = super()._check(value, info)
        return text.lower()


class NewUpload(Body):
    """The members of a request for an upload link, and of an upload in one request. ``id`` None: a new file."""

    file_name: Annotated[str, FileName()]
    content_type: Annotated[str, MediaType(description="Follows from the name by default.")] = ""
    id: Annotated[
        str | None,
        Identifier(description="The id of an existing file, which gets another version; or the id for a new file."),
    ] = None
    workspace_id: Annotated[str, Identifier()]
    size: Annotated[int | None, Whole(highest="file_bytes", description="The number of bytes to be sent.")] = None
    sha256: Annotated[str | None, Sha256()] = None


class NewVersion(NewUpload):
    """An upload to the file ``id``. Without ``file_name``, the version gets the name that the file has at the commit."""

    file_name: Annotated[str, FileName()] = ""


class FileChanges(Body):
    """An update body of a file."""

    is_update = True

    file_name: Annotated[str, FileName()]
    content_type: Annotated[str | None, MediaType(description="null: it follows from the name.")] = None
    description: Annotated[str | None, Text(longest="description_length")] = None
    tags: Annotated[str | None, Text(longest="tags_length", description="Separated by commas.")] = None


class UploadCompletion(Body):
    """The optional body of upload-complete."""

    upload_id: Annotated[str | None, Identifier(description="By default, the upload that was received last.")] = None
    sha256: Annotated[str | None, Sha256()] = None


class ConversionRetry(Body):
    """The optional body of retry-conversion (contract C7)."""

    force: Annotated[bool, Flag(description="Stop a conversion that is in progress, and start again.")] = False


def typed(new: NewUpload, declared: str = "") -> NewUpload:
    """Return the upload with a media type: its own type, else ``declared``, else the type by its file name.

    An upload without a file name keeps its own type.
    """
    if not new.file_name:
        return new
    return new.model_copy(update={"content_type": new.content_type or declared or type_of(new.file_name)})


def read_direct_upload(query: Mapping[str, str], content_type: str, limits: Limits) -> NewUpload:
    """Return the members of an upload in one request, from its query. ``content_type``: the header of the request, or empty.

    Raises:
        Invalid: the query has mistakes.
    """
    known = {"id", "workspaceId", "fileName", "contentType", "sha256"}
    body = NewVersion if "id" in query else NewUpload
    new, _ = read_body(body, {name: value for name, value in query.items() if name in known}, limits)
    declared = (
        content_type if _MEDIA_TYPE.fullmatch(content_type) and content_type.lower() not in _UNSPECIFIC_TYPES else ""
    )
    return typed(new, declared)


def read_metadata(body: object, limits: Limits) -> str:
    """Return the stored text of metadata (contract CS4), an object of bounded size and depth.

    Raises:
        Invalid: the body is not an object, or is too large or too deep.
    """
    if not isinstance(body, dict):
        raise Invalid.at("", "wrong_type", "The body must be a JSON object.")
    if is_deeper(body, limits.metadata_depth):
        raise Invalid.at("", "too_deep", f"Metadata may be nested {limits.metadata_depth} levels deep.")
    text = _CANONICAL.encode(body)
    if len(text) > limits.metadata_bytes:
        raise Invalid.at("", "too_long", f"Metadata may have {limits.metadata_bytes} bytes at the most.")
    return text.decode()


def read_workspace_id(query: Mapping[str, str]) -> str:
    """Return the query parameter ``workspaceId`` in lower case. Raises Invalid: it is missing, or not a UUID."""
    found = as_uuid(query.get("workspaceId", ""))
    if found is None:
        raise Invalid("bad_workspace_id", "The query parameter workspaceId is required and must be a UUID.")
    return found


def type_of(file_name: str) -> str:
    """Return the media type that follows from a file name."""
    return _BY_NAME.guess_type(f"x{file_name}", strict=True)[0] or UNKNOWN_TYPE
