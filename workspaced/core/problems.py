"""The errors of requests, and what a client can do about each (contract G13, G14).

::

    Problem
      Invalid               400  fix the request; carries every mistake found
      Unauthenticated       401  get a key
      Forbidden             403  ask the owner for a grant
      NotFound              404  the resource does not exist
      MethodNotAllowed      405  use another method
      Conflict              409  the present state does not permit the request
      RequestTimeout        408  send the request again, faster
      PreconditionFailed    412  read the resource again, then retry
      TooLarge              413  send less
      TargetTooLong         414  shorten the query
      UnsupportedMediaType  415  send JSON
      RangeNotSatisfiable   416  request a range within the file
      Unprocessable         422  the request is well-formed, but can't be carried out
      TooManyRequests       429  wait, then send fewer requests
      HeadTooLarge          431  send fewer or shorter headers
      Unavailable           503  wait, then try again

Rules and stores raise these errors; `workspaced.http.responses` creates the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One mistake in a request. ``pointer`` is a JSON Pointer into the body; if empty, it means the whole body."""

    pointer: str
    code: str
    detail: str


class Problem(Exception):
    """The base class of request errors.

    ``code`` is stable, for programs. ``detail`` is a sentence for people. ``headers`` are added to the response.
    """

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        mistakes: Sequence[FieldError] = (),
        headers: tuple[tuple[str, str], ...] = (),
        **extra: object,
    ) -> None:
        self.code = code
        self.detail = detail
        self.mistakes = tuple(mistakes)
        self.headers = headers
        self.extra = extra
        super().__init__(detail)


class Invalid(Problem):
    """The request is malformed, has wrong types, or is incomplete or too long."""

    status = 400
    title = "Invalid request"

    @classmethod
    def because(cls, mistakes: Sequence[FieldError]) -> Invalid:
        """Return the error with all mistakes; the first one gives the code."""
        return cls(mistakes[0].code, " ".join(mistake.detail for mistake in mistakes[:5]), mistakes=mistakes)

    @classmethod
    def at(cls, pointer: str, code: str, detail: str) -> Invalid:
        """Return the error with one mistake."""
        return cls.because([FieldError(pointer=pointer, code=code, detail=detail)])


class UnauthenticatedProblem(Problem):
    """The request has no valid key; the response does not say why the key is invalid (contract A3)."""

    status = 401
    title = "Unauthenticated"

    def __init__(self) -> None:
        how = ("WWW-Authenticate", 'ApiKey realm="edw", header="x-api-key"')  # contract A6
        super().__init__("unauthenticated", "Send a valid API key in the header x-api-key.", headers=(how,))


class ForbiddenProblem(Problem):
    """The key is valid, but does not permit the operation."""

    status = 403
    title = "Forbidden"

    def __init__(
        self,
        detail: str = "This API key does not give the permission that the operation needs.",
        *,
        code: str = "forbidden",
    ) -> None:
        super().__init__(code, detail)


class NotFoundProblem(Problem):
    """The resource does not exist, or the caller may not read it."""

    status = 404
    title = "Not found"


class MethodNotAllowed(Problem):
    """The path exists, but does not support the method."""

    status = 405
    title = "Method not allowed"

    def __init__(self, allowed: str) -> None:
        detail = f"This path supports the methods {allowed}."
        super().__init__("method_not_allowed", detail, headers=(("Allow", allowed),))


class ConflictProblem(Problem):
    """The present state does not permit the request."""

    status = 409
    title = "Conflict"


class PreconditionFailedProblem(Problem):
    """The version in If-Match is not the stored version."""

    status = 412
    title = "Precondition failed"

    def __init__(self) -> None:
        super().__init__("precondition_failed", "The resource has changed since it was read: read it again.")


class TooLargeProblem(Problem):
    """The body has more bytes than the operation accepts."""

    status = 413
    title = "Content too large"

    def __init__(self, limit: int) -> None:
        ended = ("Connection", "close")  # the rest of the body is not read
        super().__init__("too_large", f"The body may have {limit} bytes at the most.", headers=(ended,))


class UnsupportedMediaTypeProblem(Problem):
    """The body has a media type other than JSON in UTF-8."""

    status = 415
    title = "Unsupported media type"

    def __init__(self) -> None:
        super().__init__("unsupported_media_type", "The body must be application/json in UTF-8.")


class UnsupportedCoding(Problem):
    """The body has a content coding that is not supported (RFC 9110, 15.5.16)."""

    status = 415
    title = "Unsupported media type"

    def __init__(self, named: str) -> None:
        super().__init__(
            "unsupported_coding",
            f"The content coding {named[:40]!r} is not supported. Send the body uncompressed, or with gzip.",
            headers=(("Accept-Encoding", "gzip"),),
        )


class RangeNotSatisfiable(Problem):
    """The range starts after the last byte."""

    status = 416
    title = "Range not satisfiable"

    def __init__(self, size: int) -> None:
        detail = f"The file has {size} bytes, and the range starts after them."
        super().__init__("range_not_satisfiable", detail, headers=(("Content-Range", f"bytes */{size}"),))


class UnprocessableProblem(Problem):
    """The request is well-formed, but can't be carried out."""

    status = 422
    title = "Unprocessable"


class RetryLaterProblem(Problem):
    """The base class of errors after which the same request can succeed later."""

    def __init__(self, code: str, detail: str, *, retry_seconds: int = 1) -> None:
        super().__init__(code, detail, headers=(("Retry-After", str(retry_seconds)),))


class TooManyRequests(RetryLaterProblem):
    """The caller sends more requests than it may."""

    status = 429
    title = "Too many requests"


class UnavailableProblem(RetryLaterProblem):
    """The service can't carry out the request now; nothing was changed."""

    status = 503
    title = "Unavailable"
