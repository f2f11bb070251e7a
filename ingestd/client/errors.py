"""What the methods of the client raise, a class for each thing that a caller can do about it.

::

    ServiceError               everything below
      Refused                  the service answered, and not with a success
        NotModified       304  nothing is wrong: what you have (if_none_match) is current
        Redirected        3xx  give the client the service's own address
        BadRequest        400  correct the request; ``errors`` say where
        Unauthenticated   401  get a valid API key
        Forbidden         403  ask the owner for permission; of a file: or it is not there
        NotFound     404, 410  it is not there
        Conflict          409  the state forbids it: look at ``code``
        PreconditionFailed 412 it has changed (if_match): read it again
        TooLarge          413  send less at once
        UnsupportedMediaType 415
        Unprocessable     422  well-formed, but impossible: look at ``code``
        RateLimited       429  wait ``retry_after`` seconds, then go slower
        Unavailable       503  wait ``retry_after`` seconds
        ServerError       5xx  the service failed; its log has the ``request_id``
      Unreachable              no answer came; ``may_have_happened`` says whether the request may have taken effect
      UnreadableAnswer         a success whose content is not the service's: a proxy's page, half a document

A message never holds the API key or anything else of the request.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from ingestd.client.problem import Problem, ProblemError
from ingestd.client.reply import Reply
from ingestd.core.outcome import Fault

T = TypeVar("T")

_NEVER_SENT = frozenset(
    {Fault.REFUSED, Fault.UNRESOLVED, Fault.TLS, Fault.PROXY, Fault.CONNECT_TIMEOUT, Fault.POOL_TIMEOUT}
)


class ServiceError(Exception):
    """A call failed. ``operation`` is its name in the table of operations, ``status`` None where no answer came."""

    def __init__(self, reply: Reply[Any]) -> None:
        self.operation = reply.operation
        self.status = reply.status
        self.problem = reply.problem or Problem(status=reply.status or 0)
        self.retry_after = reply.outcome.retry_after_seconds
        super().__init__(f"{self.operation}: {self._sentence(reply)}")

    def __reduce__(self) -> str | tuple[Any, ...]:
        # An exception is made anew from its arguments when it travels between processes; ours are no reply any more.
        return (_restored, (type(self), self.args, self.__dict__))

    @property
    def code(self) -> str:
        """What is wrong, for programs: ``duplicate_key``, say; empty where the service does not tell."""
        return self.problem.code

    @property
    def detail(self) -> str:
        """What is wrong, in the service's words."""
        return self.problem.detail

    @property
    def errors(self) -> tuple[ProblemError, ...]:
        """Every mistake that the service found, with its place in the request's body."""
        return self.problem.errors

    @property
    def request_id(self) -> str:
        """Under which the service's log has this request."""
        return self.problem.request_id

    def _sentence(self, reply: Reply[Any]) -> str:
        # The rest of the outcome's sentence tells the daemon's operator what to do in the daemon's configuration.
        first = reply.outcome.sentence.split(". ")[0].rstrip(".")
        return " ".join(f"{first}. {reply.facts.words}".split())


class Refused(ServiceError):
    """The service answered, and not with a success."""

    what = "The service refuses the request as such"

    def _sentence(self, reply: Reply[Any]) -> str:
        words = self.problem.words or self.problem.code
        marks = f" [request {self.request_id}]" if self.request_id else ""
        return f"{self.what} ({reply.status}). {words}".rstrip() + marks


class NotModified(Refused):
    """What you have is current; the answer to ``if_none_match``."""

    what = "It has not changed"


class Redirected(Refused):
    """Redirects are not followed. ``location``: where this one leads, without its query."""

    def __init__(self, reply: Reply[Any]) -> None:
        self.location = reply.facts.location
        super().__init__(reply)

    def _sentence(self, reply: Reply[Any]) -> str:
        return (
            f"The service redirects ({reply.status}) to {self.location or 'another address'}. Redirects are not followed, for "
            "the API key would travel along; give the client the service's own address."
        )


class BadRequest(Refused):
    """The request is malformed, typed wrong, incomplete or too long."""

    what = "The request is not what the service takes"


class Unauthenticated(Refused):
    """No API key was sent, or none that is good."""

    what = "The service does not know the API key"


class Forbidden(Refused):
    """The API key may not do this; of a file: or it is not there."""

    what = "The API key may not do this"


class NotFound(Refused):
    """What was addressed is not there, or not for this key."""

    what = "It is not there"


class Conflict(Refused):
    """The state that the request meets forbids it."""

    what = "The present state forbids it"


class PreconditionFailed(Refused):
    """It has changed since the version that ``if_match`` names."""

    what = "It has changed since it was read"


class TooLarge(Refused):
    """The body is larger than the service takes."""

    what = "The request is larger than the service takes"


class UnsupportedMediaType(Refused):
    """The body is of a type that the operation does not take."""

    what = "The service does not take this type of body"


class Unprocessable(Refused):
    """The request is well-formed, but impossible."""

    what = "The service can't act on this"


class RateLimited(Refused):
    """Too many requests; wait ``retry_after`` seconds."""

    what = "The service asks to send less often"


class Unavailable(Refused):
    """The service can't do it for now; wait ``retry_after`` seconds. Nothing was changed."""

    what = "The service is not available for now"


class ServerError(Refused):
    """The service, or something before it, failed."""

    what = "The service failed"


class Unreachable(ServiceError):
    """No whole answer came. ``fault``: why; ``may_have_happened``: the request may have taken effect all the same."""

    def __init__(self, reply: Reply[Any]) -> None:
        self.fault = reply.facts.fault or Fault.PROTOCOL
        self.may_have_happened = self.fault not in _NEVER_SENT
        super().__init__(reply)


class UnreadableAnswer(ServiceError):
    """The status says success, the content is not the service's. The request may have taken effect."""


_BY_STATUS: dict[int, type[Refused]] = {
    304: NotModified,
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: PreconditionFailed,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: Unprocessable,
    429: RateLimited,
    503: Unavailable,
}
_BY_CLASS: dict[int, type[Refused]] = {3: Redirected, 5: ServerError}


def error_of(reply: Reply[Any]) -> ServiceError:
    """The error that a reply other than a success is."""
    fault, status = reply.facts.fault, reply.status
    if fault in {Fault.UNREADABLE, Fault.MISMATCH}:
        return UnreadableAnswer(reply)
    if fault is not None or status is None:
        return Unreachable(reply)
    return (_BY_STATUS.get(status) or _BY_CLASS.get(status // 100) or Refused)(reply)


def value_of(reply: Reply[T]) -> T:
    """The value of a success.

    Raises:
        ServiceError: it is none.
    """
    if not reply.ok:
        raise error_of(reply)
    return cast("T", reply.value)  # there exactly where the reply is a success; None is a value, too


def _restored(kind: type[ServiceError], args: tuple[Any, ...], state: dict[str, Any]) -> ServiceError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error
