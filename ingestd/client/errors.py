"""The errors that the methods of the clients raise: one class for each possible reaction of the caller.

No message contains the API key or any other part of the request.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from ingestd.client.response import SAYS, ProblemDetails, ServiceResponse
from ingestd.core.outcome import NEVER_SENT, Fault

T = TypeVar("T")

_BY_STATUS: dict[int, type[Refused]] = {}


class ServiceError(Exception):
    """A call failed. ``operation``: the name of the operation in the service. ``status``: None without a response.

    ``retry_after``: the seconds for which the service asks to wait, or None. ``code``: for example ``duplicate_key``, or empty.
    ``detail``: the text of the service. ``errors``: the errors in the request's body, with JSON Pointers. ``request_id``: the
    id of the request in the service's log. ``response``: the result of ``send`` of a client.
    """

    def __init__(self, response: ServiceResponse[Any]) -> None:
        self.response = response
        self.operation = response.operation
        self.status = response.status
        self.retry_after = response.outcome.retry_after_seconds
        self.problem = problem = response.problem or ProblemDetails(status=response.status or 0)
        self.code, self.detail = problem.code, problem.detail
        self.errors, self.request_id = problem.errors, problem.request_id
        super().__init__(f"{self.operation}: {self._sentence(response)}")

    def __reduce__(self) -> str | tuple[Any, ...]:
        # By default, pickle creates an exception from its `args`, which contain a sentence here and not the response.
        return (type(self), (self.response,))

    def _sentence(self, response: ServiceResponse[Any]) -> str:
        # Only the first sentence of the outcome is used: the other sentences are advice about the daemon's configuration.
        first = response.outcome.sentence.split(". ")[0].rstrip(".")
        return " ".join(f"{first}. {response.facts.words}".split())


class Refused(ServiceError):
    """The status of the response is not a success. Each subclass has a ``sentence``, and the ``statuses`` that it is for."""

    statuses: tuple[int, ...] = ()
    _sentence_of_class = "The service refuses the request itself"

    def __init_subclass__(cls, *, sentence: str, statuses: tuple[int, ...] = ()) -> None:
        cls._sentence_of_class, cls.statuses = sentence, statuses
        _BY_STATUS.update(dict.fromkeys(statuses, cls))

    def _sentence(self, response: ServiceResponse[Any]) -> str:
        words = self.problem.words or self.problem.code
        if words.removeprefix(SAYS).rstrip(".") == self._sentence_of_class:
            words = ""
        marks = f" [request {self.request_id}]" if self.request_id else ""
        return f"{self._sentence_of_class} ({response.status}). {words}".rstrip() + marks


class NameUnknown(LookupError):
    """No workspace or sink has the name."""


class NameAmbiguous(LookupError):
    """Several workspaces or sinks have the name. ``ids``: their ids."""

    def __init__(self, sentence: str, *, ids: tuple[str, ...]) -> None:
        self.ids = ids
        super().__init__(sentence)


class NotModified(Refused, statuses=(304,), sentence="The record has not changed"):
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


class BadRequest(Refused, statuses=(400,), sentence="The service does not accept the content of the request"):
    """The request is malformed, incomplete, too long, or has a member of the wrong type."""


class Unauthenticated(Refused, statuses=(401,), sentence="The service does not know the API key"):
    """The request had no valid API key."""


class Forbidden(Refused, statuses=(403,), sentence="The API key may not do this"):
    """The API key does not permit the request, or the file does not exist."""


class NotFound(Refused, statuses=(404, 410), sentence="The record does not exist"):
    """The record does not exist, or this key may not see it."""


class Conflict(Refused, statuses=(409,), sentence="The present state does not permit the request"):
    """The state of the record does not permit the request."""


class PreconditionFailed(Refused, statuses=(412,), sentence="The record has changed since it was read"):
    """The record has changed since the version that ``if_match`` names."""


class TooLarge(Refused, statuses=(413,), sentence="The request is larger than the service takes"):
    """The body is larger than the service accepts."""


class UnsupportedMediaType(Refused, statuses=(415,), sentence="The service does not accept this type of body"):
    """The operation does not accept this type of body."""


class Unprocessable(Refused, statuses=(422,), sentence="The service can't act on this"):
    """The request is well-formed, but the service can't carry it out."""


class RateLimited(Refused, statuses=(429,), sentence="The service asks to send less often"):
    """Too many requests; wait ``retry_after`` seconds."""


class Unavailable(Refused, statuses=(503,), sentence="The service is not available for now"):
    """The service can't serve the request now; wait ``retry_after`` seconds. Nothing was changed."""


class ServerError(Refused, sentence="The service failed"):
    """The service, or a proxy in front of it, failed."""


class Unreachable(ServiceError):
    """No complete response arrived; ``fault`` is the reason. ``may_have_happened``: the request may have taken effect."""

    def __init__(self, response: ServiceResponse[Any]) -> None:
        self.fault = response.facts.fault or Fault.PROTOCOL
        self.may_have_happened = self.fault not in NEVER_SENT
        super().__init__(response)


class UnreadableResponse(ServiceError):
    """The status is a success, but the content is no valid response to the request, which may have taken effect."""


_BY_CLASS: dict[int, type[Refused]] = {3: Redirected, 5: ServerError}


def error_of(response: ServiceResponse[Any]) -> ServiceError:
    """Return the error for a response that is not a success."""
    fault, status = response.facts.fault, response.status
    if fault in {Fault.UNREADABLE, Fault.MISMATCH, Fault.KEY_CHANGED, Fault.VALUE_CHANGED}:
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
