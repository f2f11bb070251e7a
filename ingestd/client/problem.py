"""Error bodies of the service: RFC 9457 problem details, the one-field errors of the interface document, or neither."""

from __future__ import annotations

import msgspec

from ingestd.client.json_bodies import decode_json
from ingestd.client.records.base import ProblemError
from ingestd.wire import names

_MAX_CHARS = 500


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal; a text that the service omits is empty.

    ``recognized``: the response has the form of the service's errors. It is a JSON object with the text ``error``, a problem
    document (RFC 9457), or has the service's header with a code. A proxy's page is none of them.
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
        """The service's own text in one line, at most 500 characters."""
        own = self.detail or self.title or self.error
        places = "; ".join(f"{error.pointer}: {error.detail or error.code}".strip(": ") for error in self.errors[:5])
        said = " ".join(f"{own} {f'({places})' if places else ''}".split()) or self.code
        text = f"The service says: {said}" if said else ""
        return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"


def _text(members: dict[str, object], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def parse_problem(
    status: int, body: bytes, *, request_id: str = "", code: str = "", content_type: str = ""
) -> ProblemDetails:
    """Return the problem in a body. A body that can't be read (HTML of a proxy, half a document) gives the status only.

    ``request_id``, ``code`` and ``content_type`` are headers; the first two apply if the body has no such member.
    """
    try:
        decoded = decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        decoded = None
    members = decoded if isinstance(decoded, dict) else {}
    listed = members.get("errors")
    errors = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    is_problem = isinstance(decoded, dict) and _media_type(content_type) == names.PROBLEM_JSON
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
