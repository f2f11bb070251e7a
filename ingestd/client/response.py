"""The result of one request, and the parser of the service's errors, which have several forms."""

from __future__ import annotations

import re
from typing import Generic, TypeVar

import msgspec

from ingestd.client.bodies import decode_json
from ingestd.client.records import ProblemError
from ingestd.core.outcome import Facts, Outcome, Remedy
from ingestd.core.rate import Announced
from ingestd.wire import names
from ingestd.wire.bulk import BulkLimits
from ingestd.wire.origin import OriginLimits
from ingestd.wire.writer import Writer

T = TypeVar("T")

_NO_FACTS = Facts()
MAX_BODY_BYTES = 4 * 1024 * 1024
"""The maximum body size of a response in bytes, unless the request sets another limit."""
SAYS = "The service says: "
"""The beginning of a sentence with the service's own words."""

_MIN_SIZE_LIMIT_BYTES = 8 * 1024
"""No proxy has a lower limit for a body."""

ITEM_PATH = re.compile(r"(?<![^\s(])(?:/entries)?/\d+/(\w+)(?=[:;)\s])")
"""The JSON Pointer to a member of an item of a bulk request; the group is the name of the member."""

_MAX_CHARS = 500
_MAX_ERRORS = 5


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True):
    """The error in a response. A text that the service omits is empty.

    ``recognized``: the response has the form of the service's errors. It is a JSON object with the text ``error``, a problem
    document (RFC 9457), or has the service's header with a code. The page of a proxy has none of these forms.
    """

    status: int
    recognized: bool = False
    error: str = ""
    title: str = ""
    detail: str = ""
    code: str = ""
    request_id: str = ""
    errors: tuple[ProblemError, ...] = ()

    @property
    def words(self) -> str:
        """The text of the service in one line, with at most 500 characters and without repeated texts."""
        own = self.detail or self.title or self.error
        found = (_without_repetition(error, own) for error in self.errors[:_MAX_ERRORS])
        places = "; ".join(text for text in found if text)
        said = " ".join(f"{own} {f'({places})' if places else ''}".split()) or self.code
        text = f"{SAYS}{said}" if said else ""
        return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"


class ServiceResponse(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The outcome of one request, and its value if it succeeded.

    ``operation``: the operation's name in the service. ``status``: None if no HTTP response arrived. ``value``: set if and only
    if ``outcome.remedy`` is "none". ``problem``: the error body of a refusal. ``bulk``, ``origin``: announced limits of bulk
    requests and of origins. ``milliseconds``: from the start of sending to the end of reading. ``facts``: the input of
    ``outcome``. ``replayed``: the service repeated an earlier response to the same Idempotency-Key. ``request_id``: the
    service's id of the request, or empty. ``rate``: the announced rate limit. ``takes_gzip``: the service announces that it
    accepts compressed bodies (RFC 9110, section 12.5.3). ``fenced``: the service announces that it refuses late requests of a
    writer. ``writer``: the newest epoch and attempt of the writer, if the service refused a late request; else None.
    """

    operation: str
    outcome: Outcome
    status: int | None = None
    value: T | None = None
    problem: ProblemDetails | None = None
    bulk: BulkLimits | None = None
    origin: OriginLimits | None = None
    milliseconds: float = 0.0
    facts: Facts = _NO_FACTS
    replayed: bool = False
    request_id: str = ""
    rate: Announced | None = None
    takes_gzip: bool = False
    fenced: bool = False
    writer: Writer | None = None

    @property
    def is_refusal_of_proxy(self) -> bool:
        """True if the body shows that a proxy refused the request, not the service."""
        return self.problem is not None and not self.problem.recognized

    def remedy_for(self, size: int) -> Remedy:
        """Return the remedy for a request of ``size`` bytes.

        If a proxy reports that a small request is too large, the remedy is a retry.
        """
        remedy = self.outcome.remedy
        is_wrong = remedy == "shrink" and self.is_refusal_of_proxy and size < _MIN_SIZE_LIMIT_BYTES
        return "retry" if is_wrong else remedy

    @property
    def ok(self) -> bool:
        """True if the service did what the request asked for, and the response matches the request."""
        return self.outcome.remedy == "none"


def _without_repetition(error: ProblemError, own: str) -> str:
    """Return the pointer and the text of an error, without what ``own`` or the text already contains."""
    text = error.detail or error.code
    if text in own:
        return "" if error.pointer in own else error.pointer
    return text if text.startswith(error.pointer) else f"{error.pointer}: {text}"


def without_item_paths(sentence: str) -> str:
    """Return the sentence with ``key`` instead of ``/17/key``: the index in a request means nothing to people."""
    return ITEM_PATH.sub(r"\1", sentence)


def _text(members: dict[str, object], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def parse_problem(
    status: int, body: bytes, *, request_id: str = "", code: str = "", content_type: str = ""
) -> ProblemDetails:
    """Return the problem in a body. If the body can't be read (HTML of a proxy, incomplete JSON), the texts are empty.

    ``request_id``, ``code`` and ``content_type`` are values of headers. If the body has an id or a code, it is used instead.
    """
    try:
        decoded = decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        decoded = None
    members = decoded if isinstance(decoded, dict) else {}
    listed = members.get("errors")
    errors = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    media_type = content_type.partition(";")[0].strip().lower()
    is_problem = isinstance(decoded, dict) and media_type == names.PROBLEM_JSON
    return ProblemDetails(
        status=status,
        recognized=is_problem or bool(code or _text(members, "error")),
        error=_text(members, "error"),
        title=_text(members, "title"),
        detail=_text(members, "detail"),
        code=_text(members, "code") or code,
        request_id=_text(members, "requestId") or request_id,
        errors=tuple(
            ProblemError(pointer=_text(item, "pointer"), code=_text(item, "code"), detail=_text(item, "detail"))
            for item in errors
        ),
    )
