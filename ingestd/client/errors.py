"""The errors that the methods of the clients raise: one class for each thing that a caller can do about it.

::

    ServiceError               everything below
      Refused                  the response is not a success
        NotModified       304  no error: the version that you have (if_none_match) is current
        Redirected        3xx  give the client the service's own address
        BadRequest        400  correct the request; ``errors`` say where
        Unauthenticated   401  get a valid API key
        Forbidden         403  ask the owner for permission; a missing file is Forbidden, too
        NotFound     404, 410  it does not exist
        Conflict          409  the state forbids it: look at ``code``
        PreconditionFailed 412 it has changed (if_match): read it again
        TooLarge          413  send less at once
        UnsupportedMediaType 415
        Unprocessable     422  well-formed, but impossible: look at ``code``
        RateLimited       429  wait ``retry_after`` seconds, then send less often
        Unavailable       503  wait ``retry_after`` seconds
        ServerError       5xx  the service failed; its log has the ``request_id``
      Unreachable              no response; ``may_have_happened`` says whether the request may have taken effect
      UnreadableResponse       a success without the service's content: a proxy's page, half a document

No message contains the API key or anything else of the request.
"""

from __future__ import annotations

import warnings
from typing import Any, TypeVar, cast

from ingestd.client.problem import ProblemDetails
from ingestd.client.records.base import ProblemError
from ingestd.client.response import ServiceResponse
from ingestd.core.outcome import NEVER_SENT, Fault

T = TypeVar("T")

_BY_STATUS: dict[int, type[Refused]] = {}


class ServiceError(Exception):
    """A call failed. ``operation``: its name in the table of operations. ``status``: None without a response.

    ``retry_after``: how many seconds the service asks to wait, or None.
    """

    def __init__(self, response: ServiceResponse[Any]) -> None:
        self.operation = response.operation
        self.status = response.status
        self.problem = response.problem or ProblemDetails(status=response.status or 0)
        self.retry_after = response.outcome.retry_after_seconds
        super().__init__(f"{self.operation}: {self._sentence(response)}")

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Pickle makes an exception from its arguments. The arguments of this one are a sentence, not a response.
        return (_restored, (type(self), self.args, self.__dict__))

    @property
    def code(self) -> str:
        """The error code, for example ``duplicate_key``; empty if the service gives none."""
        return self.problem.code

    @property
    def detail(self) -> str:
        """The error in the service's words."""
        return self.problem.detail

    @property
    def errors(self) -> tuple[ProblemError, ...]:
        """Every error in the request's body, with its JSON Pointer."""
        return self.problem.errors

    @property
    def request_id(self) -> str:
        """The id of this request in the service's log."""
        return self.problem.request_id

    def _sentence(self, response: ServiceResponse[Any]) -> str:
        # The other sentences of the outcome are advice about the daemon's configuration.
        first = response.outcome.sentence.split(". ")[0].rstrip(".")
        return " ".join(f"{first}. {response.facts.words}".split())


class Refused(ServiceError):
    """The response has another status than a success. ``sentence`` and ``statuses`` define each subclass."""

    _sentence_of_class = "The service refuses the request as such"

    def __init_subclass__(cls, *, sentence: str, statuses: tuple[int, ...] = ()) -> None:
        cls._sentence_of_class = sentence
        _BY_STATUS.update(dict.fromkeys(statuses, cls))

    def _sentence(self, response: ServiceResponse[Any]) -> str:
        words = self.problem.words or self.problem.code
        marks = f" [request {self.request_id}]" if self.request_id else ""
        return f"{self._sentence_of_class} ({response.status}). {words}".rstrip() + marks


class NotModified(Refused, statuses=(304,), sentence="It has not changed"):
    """The version that ``if_none_match`` names is current."""


class Redirected(Refused, sentence="The service redirects"):
    """Redirects are not followed. ``location``: the target, without its query."""

    def __init__(self, response: ServiceResponse[Any]) -> None:
        self.location = response.facts.location
        super().__init__(response)

    def _sentence(self, response: ServiceResponse[Any]) -> str:
        return (
            f"The service redirects ({response.status}) to {self.location or 'another address'}. Redirects are not followed, "
            "because the API key would be sent along. Give the client the service's own address."
        )


class BadRequest(Refused, statuses=(400,), sentence="The request is not what the service takes"):
    """The request is malformed, incomplete, too long, or has a member of the wrong type."""


class Unauthenticated(Refused, statuses=(401,), sentence="The service does not know the API key"):
    """The request had no API key, or an invalid one."""


class Forbidden(Refused, statuses=(403,), sentence="The API key may not do this"):
    """The API key has no permission for this, or the file does not exist."""


class NotFound(Refused, statuses=(404, 410), sentence="It is not there"):
    """The record does not exist, or this key may not see it."""


class Conflict(Refused, statuses=(409,), sentence="The present state forbids it"):
    """The state of the record forbids it."""


class PreconditionFailed(Refused, statuses=(412,), sentence="It has changed since it was read"):
    """The record has changed since the version that ``if_match`` names."""


class TooLarge(Refused, statuses=(413,), sentence="The request is larger than the service takes"):
    """The body is larger than the service accepts."""


class UnsupportedMediaType(Refused, statuses=(415,), sentence="The service does not take this type of body"):
    """The operation does not accept this type of body."""


class Unprocessable(Refused, statuses=(422,), sentence="The service can't act on this"):
    """The request is well-formed, but impossible."""


class RateLimited(Refused, statuses=(429,), sentence="The service asks to send less often"):
    """Too many requests; wait ``retry_after`` seconds."""


class Unavailable(Refused, statuses=(503,), sentence="The service is not available for now"):
    """The service can't serve the request now; wait ``retry_after`` seconds. Nothing was changed."""


class ServerError(Refused, sentence="The service failed"):
    """The service, or a proxy before it, failed."""


class Unreachable(ServiceError):
    """No whole response arrived, because of ``fault``. ``may_have_happened``: the request may have taken effect."""

    def __init__(self, response: ServiceResponse[Any]) -> None:
        self.fault = response.facts.fault or Fault.PROTOCOL
        self.may_have_happened = self.fault not in NEVER_SENT
        super().__init__(response)


class UnreadableResponse(ServiceError):
    """The status is a success, but the content is not the service's. The request may have taken effect."""


_BY_CLASS: dict[int, type[Refused]] = {3: Redirected, 5: ServerError}


def error_of(response: ServiceResponse[Any]) -> ServiceError:
    """Return the error for a response that is not a success."""
    fault, status = response.facts.fault, response.status
    if fault in {Fault.UNREADABLE, Fault.MISMATCH, Fault.KEY_CHANGED}:
        return UnreadableResponse(response)
    if fault is not None or status is None:
        return Unreachable(response)
    return (_BY_STATUS.get(status) or _BY_CLASS.get(status // 100) or Refused)(response)


def value_of(response: ServiceResponse[T]) -> T:
    """Return the value of a success.

    Raises:
        ServiceError: the response is not a success.
    """
    if not response.ok:
        raise error_of(response)
    return cast("T", response.value)  # a success has a value, which may be None


def _restored(kind: type[ServiceError], args: tuple[Any, ...], state: dict[str, Any]) -> ServiceError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def __getattr__(name: str) -> Any:
    if name == "UnreadableAnswer":  # codespell:ignore answer
        warnings.warn(f"{name} is now UnreadableResponse.", DeprecationWarning, stacklevel=2)
        return UnreadableResponse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
