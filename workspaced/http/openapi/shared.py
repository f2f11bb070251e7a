"""What operations have in common: headers of requests and answers, paging, the bodies of refusals. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ingestd.wire import bulk, names
from workspaced.core.problems import (
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    PreconditionFailed,
    Problem,
    RangeNotSatisfiable,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
)
from workspaced.http.openapi.description import Parameter
from workspaced.http.openapi.schema import COUNT, NAME, Schema, choice, listed, record, ref, text
from workspaced.http.pagination import CURSOR_LENGTH
from workspaced.settings.model import Limits

API_KEY_SCHEME: Final = "apiKey"

_PRINTABLE_KEY: Final = r'^("[ !#-~]{1,255}"|[!#-~][ -~]{0,254})$'
_ETAGS: Final = 'One or more entity tags as in ETag, or `*`: `"3"`.'

_REFUSALS: Final[tuple[type[Problem], ...]] = (
    Invalid,
    Unauthenticated,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    PreconditionFailed,
    TooLarge,
    UnsupportedMediaType,
    RangeNotSatisfiable,
    Unprocessable,
    TooManyRequests,
    Problem,
    Unavailable,
)

REFUSALS: Final[Mapping[int, str]] = {
    400: "Malformed, typed wrong, incomplete or too long. Fix the request; `errors` names every mistake.",
    401: "No key, or none that is good; which of them is told to nobody.",
    403: "The key is good, but not for this. Ask the owner for a grant.",
    404: "It is not there, or not there for this caller.",
    405: "The path exists, this method on it does not; `Allow` has those that do.",
    409: "The state forbids it.",
    412: "If-Match names another version than the stored one. Read again, then decide.",
    413: "The body has more bytes than this operation takes.",
    415: "The body is declared to be something else than is taken here.",
    416: "The range begins after the end.",
    422: "Well-formed, but impossible.",
    429: "This caller comes too often. Come back after `Retry-After` seconds.",
    500: "Something failed in the service; its log has it under `requestId`.",
    503: "The service can't do it now; nothing was changed. Come back after `Retry-After` seconds.",
}
"""What each refusal means to a caller. 405 is for whole paths and so stands at no operation."""


def component(status: int) -> str:
    """The name of a refusal among the document's components: ``NotFound``."""
    kind = next(kind for kind in _REFUSALS if kind.status == status)
    return "InternalError" if kind is Problem else kind.__name__


def request_headers(limits: Limits) -> dict[str, dict[str, Any]]:
    """Parameters in headers, by the names under which descriptions ask for them."""
    client_id = {
        "name": names.CLIENT_ID,
        "in": "header",
        "description": "An id of the calling program's instance, so that it can tell events of its own making.",
    }
    visible = "[!-~]"
    return {
        "ClientId": {
            **client_id,
            "required": True,
            "schema": text(shortest=1, longest=limits.client_id_length, pattern=f"^{visible}+$"),
            "example": "pump-7",
        },
        "OptionalClientId": {
            **client_id,
            "schema": text(longest=limits.client_id_length, pattern=f"^{visible}*$"),
            "example": "pump-7",
        },
        "RequestId": {
            "name": names.REQUEST_ID,
            "in": "header",
            "description": "Sent back and logged. What is not 1 to 64 of `A-Z a-z 0-9 . _ -` is replaced.",
            "schema": NAME,
        },
        "IdempotencyKey": {
            "name": names.IDEMPOTENCY_KEY,
            "in": "header",
            "description": "Do this once: a repetition with the same key and content gets the first answer again.",
            "schema": text(pattern=_PRINTABLE_KEY),
        },
        "IfMatch": {
            "name": "If-Match",
            "in": "header",
            "description": f"Change it only in this version. {_ETAGS}",
            "schema": NAME,
        },
        "IfNoneMatch": {
            "name": "If-None-Match",
            "in": "header",
            "description": f"Answer 304 if it still has this version. {_ETAGS}",
            "schema": NAME,
        },
        "Range": {
            "name": "Range",
            "in": "header",
            "description": "Only these bytes: `bytes=0-1023`. Several ranges are answered by the whole.",
            "schema": NAME,
        },
        "IfRange": {
            "name": "If-Range",
            "in": "header",
            "description": "The range only of this version, else the whole.",
            "schema": NAME,
        },
        "PreferMinimal": {
            "name": names.PREFER,
            "in": "header",
            "description": f"`{names.RETURN_MINIMAL}`: of a bulk call, counts instead of records.",
            "schema": NAME,
        },
        "PreferRepresentation": {
            "name": names.PREFER,
            "in": "header",
            "description": f"`{names.RETURN_REPRESENTATION}`: the whole record instead of the documented part.",
            "schema": NAME,
        },
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
    """take, skip, sortOrder and sortedBy; ``take`` and ``order`` are the words for what comes without them.

    ``cursors``: the list has pages by cursor, too.
    """
    shown = [
        Parameter(
            name="take",
            description=f"How many at the most; without it, {take}.",
            schema={"type": "integer", "minimum": 1, "maximum": limits.page_length},
        ),
        Parameter(
            name="skip",
            description="How many to leave out at the beginning.",
            schema={"type": "integer", "minimum": 0, "maximum": most_skipped, "default": 0},
        ),
        Parameter(
            name="sortOrder",
            description="The direction; small letters do, too.",
            schema={**choice("ASC", "DESC", "asc", "desc"), "default": order},
        ),
    ]
    if cursors:
        shown.append(
            Parameter(
                name="cursor",
                description=(
                    "Where the page begins: from the Link rel=next of the page before, with the same sortedBy and sortOrder. "
                    "Pages by cursor miss no record and repeat none while others are added and removed."
                ),
                schema=text(longest=CURSOR_LENGTH),
            )
        )
    if sortable:
        shown.append(Parameter(name="sortedBy", description="The member to sort by.", schema=choice(*sorted(sortable))))
    return tuple(shown)


LISTED: Final = ("Count", "Links")
"""The headers of a list."""
WALKED_LIST: Final = ("PartCount", "Links")
"""The headers of a list that may be too long to be counted."""
WALKED: Final = (
    "A page passes over {} records at the most: with a filter it may have fewer than `take`, or none, and still a Link "
    "rel=next. X-Total-Count is on the first page, where there are no more records than that."
)


def answer_headers() -> dict[str, dict[str, Any]]:
    """Headers of answers, by the names under which descriptions ask for them; `HEADER_NAMES` has those on the wire."""

    def always(about: str, schema: Schema = NAME) -> dict[str, Any]:
        return {"description": about, "required": True, "schema": schema}

    def maybe(about: str, schema: Schema = NAME) -> dict[str, Any]:
        return {"description": about, "schema": schema}

    etag = text(pattern=r'^"[^"]+"$')
    return {
        "RequestId": always("The request's id, under which the log has it."),
        "RatePolicy": maybe("How many requests (q) in how many seconds (w); absent without a limit."),
        "Rate": maybe("How many requests are left (r), and in how many seconds there are more (t)."),
        "ETag": always("The version, for If-Match and If-None-Match.", etag),
        "SingleETag": maybe("The version of the entry, in answers to the single form.", etag),
        "Location": always("The path of what was created.", text(pattern="^/")),
        "Count": always("How many there are in all, whatever part is shown.", COUNT),
        "PartCount": maybe("Where not everything was asked for: how many there are in all.", COUNT),
        "Links": maybe("Where paged: the paths of the next and the previous part (RFC 8288)."),
        "Bulk": always(
            "How many items and bytes one bulk call may have; who does not see it sends entries one by one.",
            text(pattern=r"^max-items=[1-9][0-9]*, max-bytes=[1-9][0-9]*$"),
        ),
        "Retry": always("Seconds to wait.", COUNT),
        "ErrorCode": always("The member `code` of the problem, also where the body does not have it."),
        "Authenticate": always("How to authenticate."),
        "Allow": always("The methods that this path knows."),
        "Stale": maybe("`ignored`: the stored value was observed later, and stays.", choice("ignored")),
        "Applied": maybe("The preference that was followed."),
        "Ignored": maybe("Members of the body that nobody knows, separated by commas."),
        "Replayed": maybe("`true`: the kept answer to an earlier request with this Idempotency-Key.", choice("true")),
        "Disposition": always("The file's name; it is to be saved, not shown."),
        "Ranges": always("`bytes`: ranges can be asked for.", choice("bytes")),
        "ContentRange": always("Which bytes of how many these are."),
        "Cache": always("`no-store`: the answer holds secrets.", choice("no-store")),
    }


HEADER_NAMES: Final[Mapping[str, str]] = {
    "RequestId": names.REQUEST_ID,
    "RatePolicy": "RateLimit-Policy",
    "Rate": "RateLimit",
    "ETag": "ETag",
    "SingleETag": "ETag",
    "Location": "Location",
    "Count": "X-Total-Count",
    "PartCount": "X-Total-Count",
    "Links": "Link",
    "Bulk": bulk.HEADER,
    "Retry": "Retry-After",
    "ErrorCode": names.ERROR_CODE,
    "Authenticate": "WWW-Authenticate",
    "Allow": "Allow",
    "Stale": "X-Stale-Write",
    "Applied": names.PREFERENCE_APPLIED,
    "Ignored": "X-Ignored-Fields",
    "Replayed": "Idempotent-Replayed",
    "Disposition": "Content-Disposition",
    "Ranges": "Accept-Ranges",
    "ContentRange": "Content-Range",
    "Cache": "Cache-Control",
}


def headers(*wanted: str) -> dict[str, dict[str, Any]]:
    """Headers of an answer by reference, by their names on the wire."""
    return {HEADER_NAMES[name]: {"$ref": f"#/components/headers/{name}"} for name in wanted}


def refusal_schemas() -> dict[str, Schema]:
    """The bodies of refusals (RFC 9457), and the one that the interface document shows."""
    mistake = record(
        {
            "pointer": text(about="JSON Pointer into the body; empty for the body as a whole."),
            "code": NAME,
            "detail": NAME,
        }
    )
    problem = record(
        {
            "type": NAME,
            "title": NAME,
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": text(about="A sentence for people."),
            "instance": text(about="The path of the request."),
            "code": text(about="Stable, for programs.", pattern="^[a-z0-9_]+$"),
            "requestId": NAME,
            "error": text(about="The same as title."),
            "errors": listed(ref("Mistake")),
            "existingId": text(about="Of what is there already, where the caller may know it."),
        },
        optional={"errors", "existingId"},
    )
    shown = {
        "type": "object",
        "properties": {"error": {"const": Invalid.title}},
        "required": ["error"],
        "additionalProperties": False,
    }
    return {"Problem": problem, "Mistake": mistake, "InvalidRequest": shown}
