"""Parts that operations share: headers of requests and responses, paging, the bodies of errors.

This module performs no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ingestd.wire import bulk, names, origin, writer
from workspaced.core.json_schema import COUNT, STRING, Schema, array, choice, ref, response, string
from workspaced.core.problems import (
    ConflictProblem,
    ForbiddenProblem,
    Invalid,
    MethodNotAllowed,
    NotFoundProblem,
    PreconditionFailedProblem,
    Problem,
    RangeNotSatisfiable,
    TooLargeProblem,
    TooManyRequests,
    UnauthenticatedProblem,
    UnavailableProblem,
    UnprocessableProblem,
    UnsupportedMediaTypeProblem,
)
from workspaced.http.description import Parameter
from workspaced.http.pagination import CURSOR_LENGTH
from workspaced.settings.model import Limits

API_KEY_SCHEME: Final = "apiKey"

_PRINTABLE_KEY: Final = r'^("[ !#-~]{1,255}"|[!#-~][ -~]{0,254})$'
_WRITER: Final = "^[A-Za-z0-9._-]{1,64};[0-9]{1,18};[0-9]{1,18}$"
_ETAGS: Final = 'One or more entity tags as in ETag, or `*`: `"3"`.'

_PROBLEMS: Final[Mapping[type[Problem], str]] = {
    Invalid: "Malformed, of a wrong type, incomplete or too long. Fix the request; `errors` names every mistake.",
    UnauthenticatedProblem: "No valid key. The response does not say what is wrong with the key.",
    ForbiddenProblem: "The key is valid, but does not permit this. Ask the owner for a grant.",
    NotFoundProblem: "The resource does not exist, or this caller may not know that it exists.",
    MethodNotAllowed: "The path exists, but does not support this method; `Allow` names the supported methods.",
    ConflictProblem: "The present state of the resource does not permit the request.",
    PreconditionFailedProblem: "If-Match names another version than the stored one. Read again, then decide.",
    TooLargeProblem: "The body has more bytes than this operation accepts.",
    UnsupportedMediaTypeProblem: "The body has a media type that is not accepted here.",
    RangeNotSatisfiable: "The range begins after the end.",
    UnprocessableProblem: "The request is well-formed, but it can't be performed.",
    TooManyRequests: "Too many requests by this caller. Try again after `Retry-After` seconds.",
    Problem: "The service failed to handle the request. Search its log for `requestId`.",
    UnavailableProblem: "The service can't perform the request now; nothing was changed. Try again after `Retry-After` seconds.",
}
"""The meaning of each error for a caller. 405 belongs to whole paths, so no operation lists it."""
REFUSALS: Final = {kind.status: text for kind, text in _PROBLEMS.items()}


def component(status: int) -> str:
    """Return the name of an error among the document's components: ``NotFound``."""
    kind = next(kind for kind in _PROBLEMS if kind.status == status)
    return "InternalError" if kind is Problem else kind.__name__.removesuffix("Problem")


def request_headers(limits: Limits) -> dict[str, dict[str, Any]]:
    """Return the header parameters, by their names among the document's components."""

    def header(name: str, description: str, schema: Schema = STRING, **more: object) -> dict[str, Any]:
        return {"name": name, "in": "header", "description": description, "schema": schema, **more}

    visible, longest = "[!-~]", limits.client_id_length
    about = "The id of the calling program's instance, by which it can recognise the events of its own changes."
    required = string(shortest=1, longest=longest, pattern=f"^{visible}+$")
    optional = string(longest=longest, pattern=f"^{visible}*$")
    return {
        "ClientId": header(names.CLIENT_ID, about, required, required=True, example="pump-7"),
        "OptionalClientId": header(names.CLIENT_ID, about, optional, example="pump-7"),
        "RequestId": header(
            names.REQUEST_ID,
            "Returned and logged. A text other than 1 to 64 of the characters `A-Z a-z 0-9 . _ -` is replaced.",
        ),
        "IdempotencyKey": header(
            names.IDEMPOTENCY_KEY,
            "Do this once: a repetition with the same key and content gets the first response again.",
            string(pattern=_PRINTABLE_KEY),
        ),
        "Writer": header(
            writer.HEADER,
            "The name, epoch and attempt of the writer. A request with an older epoch or attempt than an earlier one of the "
            "writer in this workspace is refused.",
            string(pattern=_WRITER),
            example="daemon-7;1;42",
        ),
        "IfMatch": header("If-Match", f"Change the resource only if it has this version. {_ETAGS}"),
        "IfNoneMatch": header("If-None-Match", f"Respond with 304 if the resource still has this version. {_ETAGS}"),
        "Range": header("Range", "Only these bytes: `bytes=0-1023`. A request for several ranges gets the whole file."),
        "IfRange": header("If-Range", "Send the range if the file still has this version, else send the whole file."),
        "PreferMinimal": header(names.PREFER, f"`{names.RETURN_MINIMAL}`: for a bulk call, counts instead of records."),
        "PreferRepresentation": header(
            names.PREFER, f"`{names.RETURN_REPRESENTATION}`: the whole record instead of a part of it."
        ),
    }


def paging(
    limits: Limits,
    sortable: Collection[str],
    *,
    take: str = "everything",
    order: str = "ASC",
    most_skipped: int = 2**53,
    cursors: bool = False,
) -> tuple[Parameter, ...]:
    """Return the parameters take, skip, sortOrder and sortedBy. ``take`` and ``order``: the defaults of take and sortOrder.

    ``cursors``: the list also supports pages by cursor.
    """
    number: Schema = {"type": "integer"}
    direction = {**choice("ASC", "DESC", "asc", "desc"), "default": order}
    shown = [
        Parameter(
            "take",
            f"The maximum number of records; without this parameter, {take}.",
            {**number, "minimum": 1, "maximum": limits.page_length},
        ),
        Parameter(
            "skip",
            "The number of records to skip at the beginning.",
            {**number, "minimum": 0, "maximum": most_skipped, "default": 0},
        ),
        Parameter("sortOrder", "The direction, in upper or lower case.", direction),
    ]
    if cursors:
        about = (
            "Where the page begins: from the Link rel=next of the page before, with the same sortedBy and sortOrder. "
            "Pages by cursor miss no record and repeat none while other records are added and removed."
        )
        shown.append(Parameter("cursor", about, string(longest=CURSOR_LENGTH)))
    if sortable:
        shown.append(Parameter("sortedBy", "The member to sort by.", choice(*sorted(sortable))))
    return tuple(shown)


def _always(name: str, description: str, schema: Schema = STRING) -> tuple[str, dict[str, Any]]:
    return name, {"description": description, "required": True, "schema": schema}


def _optional(name: str, description: str, schema: Schema = STRING) -> tuple[str, dict[str, Any]]:
    return name, {"description": description, "schema": schema}


_ETAG: Final = string(pattern=r'^"[^"]+"$')
_BULK: Final = string(pattern=r"^max-items=[1-9][0-9]*, max-bytes=[1-9][0-9]*$")
_HEADERS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "RequestId": _always(names.REQUEST_ID, "The request's id, which is in the log."),
    "RatePolicy": _optional(
        "RateLimit-Policy", "How many requests (q) in how many seconds (w); absent without a limit."
    ),
    "Rate": _optional("RateLimit", "How many requests are left (r), and in how many seconds there are more (t)."),
    "ETag": _always("ETag", "The version, for If-Match and If-None-Match.", _ETAG),
    "SingleETag": _optional("ETag", "The version of the entry, in responses to the single form.", _ETAG),
    "Location": _always("Location", "The path of what was created.", string(pattern="^/")),
    "Count": _always("X-Total-Count", "The total number of records, not only of those in this response.", COUNT),
    "PartCount": _optional("X-Total-Count", "If only a part was requested: the total number of records.", COUNT),
    "Links": _optional("Link", "On a page: the paths of the next and the previous page (RFC 8288)."),
    "Bulk": _always(
        bulk.HEADER,
        "How many items and bytes one bulk call may have. Without this header, a client sends entries one by one.",
        _BULK,
    ),
    "Fence": _always(
        writer.FENCE_HEADER,
        "The parts of X-Writer that are compared. Without this header, a client reads entries again after an uncertain request.",
        choice(writer.FENCE),
    ),
    "Origins": _always(
        origin.HEADER,
        "How many origins one bulk call may have, and how long their texts may be. Without this header, clients send none.",
        string(pattern=r"^max-origins=[1-9][0-9]*, max-text=[1-9][0-9]*$"),
    ),
    "Newest": _optional(writer.HEADER, "With `writer_fenced`: the newest epoch and attempt.", string(pattern=_WRITER)),
    "Retry": _always("Retry-After", "Seconds to wait.", COUNT),
    "ErrorCode": _always(names.ERROR_CODE, "The member `code` of the problem, even if the body does not have it."),
    "Authenticate": _always("WWW-Authenticate", "How to authenticate."),
    "Allow": _always("Allow", "The methods that this path supports."),
    "Stale": _optional(
        "X-Stale-Write", "`ignored`: the stored value was observed later, and stays.", choice("ignored")
    ),
    "Applied": _optional(names.PREFERENCE_APPLIED, "The preference that was followed."),
    "Ignored": _optional("X-Ignored-Fields", "Unknown members of the body, separated by commas."),
    "Replayed": _optional(
        "Idempotent-Replayed", "`true`: the stored response to an earlier request with this key.", choice("true")
    ),
    "Disposition": _always("Content-Disposition", "The file's name; browsers save the file instead of showing it."),
    "Ranges": _always("Accept-Ranges", "`bytes`: ranges can be requested.", choice("bytes")),
    "ContentRange": _always("Content-Range", "The range of these bytes, and the size of the file."),
    "Cache": _always("Cache-Control", "`no-store`: the response holds secrets.", choice("no-store")),
}


def response_headers() -> dict[str, dict[str, Any]]:
    """Return the headers of responses, by their names among the document's components."""
    return {name: dict(header) for name, (_, header) in _HEADERS.items()}


def headers(*wanted: str) -> dict[str, dict[str, Any]]:
    """Return references to headers of a response, by their names on the wire."""
    return {_HEADERS[name][0]: {"$ref": f"#/components/headers/{name}"} for name in wanted}


def refusal_schemas() -> dict[str, Schema]:
    """Return the bodies of errors (RFC 9457), and the body that the interface document shows."""
    pointer = string(description="JSON Pointer into the body; empty for the body as a whole.")
    problem = {
        "type": STRING,
        "title": STRING,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": string(description="A sentence for people."),
        "instance": string(description="The path of the request."),
        "code": string(description="Stable, for programs.", pattern="^[a-z0-9_]+$"),
        "requestId": STRING,
        "error": string(description="The same as title."),
        "errors": array(ref("Mistake")),
        "existingId": string(description="The id of what exists already, if the caller may read it."),
    }
    shown = {"error": {"const": Invalid.title}}
    return {
        "Problem": response(problem, optional={"errors", "existingId"}),
        "Mistake": response({"pointer": pointer, "code": STRING, "detail": STRING}),
        "InvalidRequest": {**response(shown), "additionalProperties": False},
    }
