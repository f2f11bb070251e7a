"""What a service says when it refuses: RFC 9457 problems, the document's one-field errors, or neither."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import msgspec

from ingestd.wire import names

_MOST_WORDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemError:
    """One thing that is wrong; ``pointer`` is a JSON Pointer into the request's body."""

    pointer: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A refusal; every text is empty where the service left it out.

    ``recognized``: the response has the form of the service's errors: a JSON object with the text ``error``, as the interface
    document has it, a problem document (RFC 9457), or the service's header with a code. A proxy's page has none of them.
    """

    status: int
    recognized: bool = False
    error: str = ""
    title: str = ""
    detail: str = ""
    code: str = ""
    request_id: str = ""
    errors: tuple[ProblemError, ...] = dataclasses.field(default=())

    @property
    def words(self) -> str:
        """The service's own words in one line, at most 500 characters."""
        own = self.detail or self.title or self.error
        places = "; ".join(f"{error.pointer}: {error.detail or error.code}".strip(": ") for error in self.errors[:5])
        said = " ".join(f"{own} {f'({places})' if places else ''}".split()) or self.code
        text = f"The service says: {said}" if said else ""
        return text if len(text) <= _MOST_WORDS else f"{text[:_MOST_WORDS]}…"


def _text(members: dict[str, object], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _error(item: object) -> ProblemError | None:
    if not isinstance(item, dict):
        return None
    return ProblemError(pointer=_text(item, "pointer"), code=_text(item, "code"), detail=_text(item, "detail"))


def parse_problem(status: int, body: bytes, *, request_id: str = "", code: str = "", content_type: str = "") -> Problem:
    """The problem that a body tells; what can't be read (HTML of a proxy, half a document) tells only its status.

    ``request_id`` and ``code``: what the headers say, for bodies that don't. ``content_type``: the header.
    """
    try:
        members = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        members = None
    if not isinstance(members, dict):
        return Problem(status=status, recognized=bool(code), request_id=request_id, code=code)
    listed = members.get("errors")
    errors = (_error(item) for item in listed) if isinstance(listed, list) else ()
    return Problem(
        status=status,
        recognized=bool(code or _text(members, "error")) or _media_type(content_type) == names.PROBLEM_JSON,
        error=_text(members, "error"),
        title=_text(members, "title"),
        detail=_text(members, "detail"),
        code=_text(members, "code") or code,
        request_id=_text(members, "requestId") or request_id,
        errors=tuple(error for error in errors if error is not None),
    )
