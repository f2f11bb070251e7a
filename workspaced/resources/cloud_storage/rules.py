"""What may be said of files (contract C1, C3, C4). Pure: bodies and queries in, checked values or every mistake out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from mimetypes import MimeTypes
from typing import Final

import msgspec
from msgspec import UNSET

from workspaced.core.fields import Fields
from workspaced.core.problems import Invalid
from workspaced.core.text import as_uuid
from workspaced.resources.cloud_storage.values import Given, NewUpload
from workspaced.settings.model import Limits

UNKNOWN_TYPE: Final = "application/octet-stream"
# What curl and forms say of bytes that they know nothing about.
_SAYS_NOTHING = frozenset({"", "application/x-www-form-urlencoded"})
_WORD = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_MEDIA_TYPE = re.compile(rf'{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|"[\x20-\x21\x23-\x5b\x5d-\x7e]*"))*')
_MEDIA_TYPE_LENGTH = 255
_SHA256 = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_CANONICAL = msgspec.json.Encoder(decimal_format="number", order="sorted")
# The standard library's own table, not the machine's: the same name must not mean another type elsewhere.
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


def read_upload_link(body: object, limits: Limits) -> tuple[NewUpload, tuple[str, ...]]:
    """The body of upload-link and the ignored names.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    return _upload(fields, limits, content_type=""), fields.finish()


def read_one_shot(query: Mapping[str, str], content_type: str, limits: Limits) -> NewUpload:
    """The query of an upload in one request. ``content_type``: what the request's header says, if anything.

    Raises:
        Invalid: something is wrong.
    """
    known = {"id", "workspaceId", "fileName", "contentType", "sha256"}
    fields = Fields({name: value for name, value in query.items() if name in known})
    new = _upload(fields, limits, content_type=content_type)
    fields.finish()
    return new


def _upload(fields: Fields, limits: Limits, *, content_type: str) -> NewUpload:
    file_name = _file_name(fields, limits, required=True) or ""
    said = _media_type(fields)
    if said is None and _MEDIA_TYPE.fullmatch(content_type) and content_type.lower() not in _SAYS_NOTHING:
        said = content_type
    return NewUpload(
        id=fields.identifier("id"),
        workspace_id=fields.identifier("workspaceId", required=True) or "",
        file_name=file_name,
        content_type=said or type_of(file_name),
        size=fields.whole("size", lowest=0, highest=limits.file_bytes),
        sha256=_sha256(fields),
    )


def read_file_changes(body: object, limits: Limits) -> tuple[Given, tuple[str, ...]]:
    """The checked body (contract CS2, C3) and the ignored names. Null clears a text; the type then follows the name.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    given: dict[str, str | None] = {}
    if fields.raw("fileName") is not UNSET:
        given["file_name"] = _file_name(fields, limits, required=True)
    if fields.raw("contentType") is not UNSET:
        given["content_type"] = _media_type(fields)
    for name, longest in (("description", limits.description_length), ("tags", limits.tags_length)):
        text = fields.text(name, longest=longest)
        if text is None or isinstance(text, str):
            given[name] = text
    return given, fields.finish()


def read_metadata(body: object, limits: Limits) -> str:
    """The body (contract CS4) as the text that is kept: an object of bounded size and depth.

    Raises:
        Invalid: it is not.
    """
    if not isinstance(body, dict):
        raise Invalid.at("", "wrong_type", "The body must be a JSON object.")
    text = _CANONICAL.encode(body)
    if len(text) > limits.metadata_bytes:
        raise Invalid.at("", "too_long", f"Metadata may have {limits.metadata_bytes} bytes at the most.")
    if _depth(body, limits.metadata_depth) > limits.metadata_depth:
        raise Invalid.at("", "too_deep", f"Metadata may be nested {limits.metadata_depth} levels deep.")
    return text.decode()


def read_completion(body: object) -> tuple[str | None, str | None, tuple[str, ...]]:
    """The body of upload-complete: the upload's id and the digest, as far as it names them, and the ignored names.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    upload_id = fields.identifier("uploadId")
    sha256 = _sha256(fields)
    return upload_id, sha256, fields.finish()


def read_force(body: object) -> tuple[bool, tuple[str, ...]]:
    """The body of retry-conversion (contract C7) and the ignored names.

    Raises:
        Invalid: something is wrong.
    """
    fields = Fields(body)
    force = fields.flag("force", default=False)
    return force, fields.finish()


def read_workspace_id(query: Mapping[str, str]) -> str:
    """The query parameter ``workspaceId`` in lower case.

    Raises:
        Invalid: it is missing, or no UUID.
    """
    found = as_uuid(query.get("workspaceId", ""))
    if found is None:
        raise Invalid("bad_workspace_id", "The query parameter workspaceId is required and must be a UUID.")
    return found


def type_of(file_name: str) -> str:
    """The media type that a name stands for."""
    return _BY_NAME.guess_type(f"x{file_name}", strict=True)[0] or UNKNOWN_TYPE


def _file_name(fields: Fields, limits: Limits, *, required: bool) -> str | None:
    """A name, never a path: neither slash nor backslash, and none of the two names that mean folders."""
    text = fields.text("fileName", longest=limits.file_name_length, required=required, one_line=True)
    if not isinstance(text, str):
        return None
    if not text.strip():
        fields.mistake("fileName", "blank", "can't be blank")
    if "/" in text or "\\" in text or text.strip() in {".", ".."}:
        fields.mistake("fileName", "bad_file_name", "must be a name without a path: no / and no \\, not . and not ..")
    return text.strip()


def _media_type(fields: Fields) -> str | None:
    text = fields.text("contentType", longest=_MEDIA_TYPE_LENGTH, exact=True)
    if not isinstance(text, str):
        return None
    if not _MEDIA_TYPE.fullmatch(text):
        fields.mistake("contentType", "bad_media_type", "must be a media type like text/csv")
    return text


def _sha256(fields: Fields) -> str | None:
    text = fields.text("sha256", longest=64)
    if not isinstance(text, str):
        return None
    if not _SHA256.fullmatch(text):
        fields.mistake("sha256", "bad_sha256", "must have 64 hexadecimal digits")
    return text.lower()


def _depth(value: object, most: int) -> int:
    """How deep a value is nested, looked at no further than one level below ``most``."""
    if not isinstance(value, dict | list) or most < 0:
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(item, most - 1) for item in inner), default=0)
