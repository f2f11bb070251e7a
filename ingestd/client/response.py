"""The result of one request, with or without an HTTP response."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from ingestd.client.problem import ProblemDetails
from ingestd.core.outcome import Facts, Outcome
from ingestd.core.rate import Announced
from ingestd.wire.bulk import BulkLimits
from ingestd.wire.writer import Writer

T = TypeVar("T")

_NO_FACTS = Facts()
MAX_BODY_BYTES = 4 * 1024 * 1024
"""The longest body of a response about few entries."""


class ServiceResponse(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The outcome of one request, and its value if it succeeded.

    ``operation``: its name in the table of operations. ``status``: None if no HTTP response arrived. ``value``: set if and
    only if ``outcome.remedy`` is "none". ``problem``: the error body of a refusal. ``bulk``: the announced limits of bulk
    requests. ``milliseconds``: from the start of sending to the end of reading. ``facts``: the input of ``outcome``.
    ``replayed``: the service repeated an earlier response to the same Idempotency-Key. ``request_id``: the service's id
    of the request, or empty. ``rate``: the announced rate limit. ``takes_gzip``: the service announces that it accepts
    compressed bodies (RFC 9110, section 12.5.3). ``fenced``: the service announces that it refuses late requests of a
    writer. ``writer``: the newest rank of the writer, with such a refusal.
    """

    operation: str
    outcome: Outcome
    status: int | None = None
    value: T | None = None
    problem: ProblemDetails | None = None
    bulk: BulkLimits | None = None
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

    @property
    def ok(self) -> bool:
        """True if the service did what the request asked for, and the response matches it."""
        return self.outcome.remedy == "none"
