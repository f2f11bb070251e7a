"""Every refusal of a request, named for the condition and grouped by what the client has to do (contract G13, G14).

::

    Problem
      Invalid               400  fix the request; carries every mistake found
      Unauthenticated       401  get a key
      Forbidden             403  ask the owner
      NotFound              404  it is not there
      MethodNotAllowed      405  another method
      Conflict              409  the state forbids it
      RequestTimeout        408  send it again, faster
      PreconditionFailed    412  re-read, then try again
      TooLarge              413  send less
      TargetTooLong         414  ask for less in the query
      UnsupportedMediaType  415  send JSON
      RangeNotSatisfiable   416  ask for bytes that there are
      Unprocessable         422  well-formed, but impossible
      TooManyRequests       429  wait, then go slower
      HeadTooLarge          431  send fewer or shorter headers
      Unavailable           503  wait, then try again

Rules and stores raise them; one place in `workspaced.http` turns them into bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMistake:
    """One mistake in a request. ``pointer`` is a JSON Pointer into the body, or empty for what is not in the body."""

    pointer: str
    code: str
    detail: str


class Problem(Exception):
    """The root. ``code`` is stable and for programs, ``detail`` a sentence for people."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(self, code: str, detail: str, *, mistakes: Sequence[RequestMistake] = (), **extra: object) -> None:
        self.code = code
        self.detail = detail
        self.mistakes = tuple(mistakes)
        self.extra = extra
        super().__init__(detail)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What this refusal says in headers."""
        return ()


class Invalid(Problem):
    """The request is malformed, typed wrong, incomplete or too long."""

    status = 400
    title = "Invalid request"

    @classmethod
    def because(cls, mistakes: Sequence[RequestMistake]) -> Invalid:
        """One refusal out of all mistakes found; the first gives the code."""
        return cls(mistakes[0].code, " ".join(mistake.detail for mistake in mistakes[:5]), mistakes=mistakes)

    @classmethod
    def at(cls, pointer: str, code: str, detail: str) -> Invalid:
        """One mistake at one place."""
        return cls.because([RequestMistake(pointer=pointer, code=code, detail=detail)])


class UnauthenticatedProblem(Problem):
    """No key, or none that is good: the answer never tells which (contract A3)."""

    status = 401
    title = "Unauthenticated"

    def __init__(self) -> None:
        super().__init__("unauthenticated", "Send a valid API key in the header x-api-key.")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """How to authenticate (contract A6)."""
        return (("WWW-Authenticate", 'ApiKey realm="edw", header="x-api-key"'),)


class ForbiddenProblem(Problem):
    """The key is good, but not for this."""

    status = 403
    title = "Forbidden"

    def __init__(self) -> None:
        super().__init__("forbidden", "This API key does not give the permission that the operation needs.")


class NotFoundProblem(Problem):
    """It is not there, or not there for this caller."""

    status = 404
    title = "Not found"


class MethodNotAllowed(Problem):
    """The path exists, the method on it does not."""

    status = 405
    title = "Method not allowed"

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed
        super().__init__("method_not_allowed", f"This path knows the methods {allowed}.")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The union of the methods of all that this path can mean."""
        return (("Allow", self.allowed),)


class RequestTimeout(Problem):
    """The request did not come whole in its time."""

    status = 408
    title = "Request timeout"

    def __init__(self, detail: str) -> None:
        super().__init__("request_timeout", detail)


class ConflictProblem(Problem):
    """The state that the request meets forbids it."""

    status = 409
    title = "Conflict"


class PreconditionFailedProblem(Problem):
    """If-Match names another version than the stored one."""

    status = 412
    title = "Precondition failed"

    def __init__(self) -> None:
        super().__init__("precondition_failed", "The resource has changed since it was read: read it again.")


class TooLargeProblem(Problem):
    """The body has more bytes than this operation takes."""

    status = 413
    title = "Content too large"

    def __init__(self, limit: int) -> None:
        super().__init__("too_large", f"The body may have {limit} bytes at the most.")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The rest of the body is not read, so the connection can't be used again."""
        return (("Connection", "close"),)


class TargetTooLong(Problem):
    """The path and query have more bytes than the service reads."""

    status = 414
    title = "URI too long"

    def __init__(self, limit: int) -> None:
        super().__init__("target_too_long", f"The path and query may have {limit} bytes together at the most.")


class HeadTooLarge(Problem):
    """The request's head has more bytes or lines than the service reads."""

    status = 431
    title = "Request header fields too large"

    def __init__(self, *, most_bytes: int, most_lines: int) -> None:
        super().__init__(
            "head_too_large",
            f"The request's head may have {most_bytes} bytes and {most_lines} header lines at the most.",
        )


class UnsupportedMediaTypeProblem(Problem):
    """The body is declared to be something else than JSON in UTF-8."""

    status = 415
    title = "Unsupported media type"

    def __init__(self) -> None:
        super().__init__("unsupported_media_type", "The body must be application/json in UTF-8.")


class UnsupportedCoding(Problem):
    """The body is packed in a way that is not taken (RFC 9110, 15.5.16)."""

    status = 415
    title = "Unsupported media type"

    def __init__(self, named: str) -> None:
        super().__init__(
            "unsupported_coding", f"The body is packed as {named[:40]!r}; send it as it is, or packed with gzip."
        )

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """What is taken instead."""
        return (("Accept-Encoding", "gzip"),)


class RangeNotSatisfiable(Problem):
    """The range begins after the end."""

    status = 416
    title = "Range not satisfiable"

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__("range_not_satisfiable", f"There are {size} bytes, and the range begins after them.")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """How many bytes there are."""
        return (("Content-Range", f"bytes */{self.size}"),)


class UnprocessableProblem(Problem):
    """The request is well-formed, but can't be done."""

    status = 422
    title = "Unprocessable"


class TooManyRequests(Problem):
    """The caller comes too often."""

    status = 429
    title = "Too many requests"

    def __init__(self, code: str, detail: str, *, retry_seconds: int) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(code, detail)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """When to come back."""
        return (("Retry-After", str(self.retry_seconds)),)


class UnavailableProblem(Problem):
    """The service can't do it now; nothing was changed."""

    status = 503
    title = "Unavailable"

    def __init__(self, code: str, detail: str, *, retry_seconds: int = 1) -> None:
        self.retry_seconds = retry_seconds
        super().__init__(code, detail)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """When to come back."""
        return (("Retry-After", str(self.retry_seconds)),)
