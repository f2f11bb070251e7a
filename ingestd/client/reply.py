"""What a call of the service comes back with, be it an answer or none."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from ingestd.client.problem import Problem
from ingestd.core.outcome import Facts, Outcome
from ingestd.core.rate import Announced
from ingestd.wire.bulk import BulkLimits

T = TypeVar("T")

_NO_FACTS = Facts()


class Reply(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request's end.

    ``value`` is there exactly where ``outcome.remedy`` is "none". ``status`` is None where no answer came. ``problem`` is
    what the service said when it refused. ``bulk``: what the answer announces (None: nothing). ``milliseconds``: from the
    start of sending to the end of reading. ``facts``: what the outcome was judged by. ``replayed``: the service repeats an
    older answer to the same Idempotency-Key. ``request_id``: what the service calls the request; empty where it does not
    say. ``rate``: what the answer says of the service's limit of requests.
    ``takes_gzip``: it announces that bodies may be packed (RFC 9110, 12.5.3).
    """

    operation: str
    outcome: Outcome
    status: int | None = None
    value: T | None = None
    problem: Problem | None = None
    bulk: BulkLimits | None = None
    milliseconds: float = 0.0
    facts: Facts = _NO_FACTS
    replayed: bool = False
    request_id: str = ""
    rate: Announced | None = None
    takes_gzip: bool = False

    @property
    def is_refusal_of_proxy(self) -> bool:
        """Something else than the service refused the request, as its body shows."""
        return self.problem is not None and not self.problem.recognized

    @property
    def ok(self) -> bool:
        """The service did what was asked, and its answer can be believed."""
        return self.outcome.remedy == "none"
