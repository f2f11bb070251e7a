"""From an answer, or none, to a `Reply`: decoded, checked and judged, the same way for every operation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import httpx
import msgspec

from ingestd.client.decoding import Mismatch, Unreadable
from ingestd.client.operations import Operation
from ingestd.client.problem import Problem, parse_problem
from ingestd.client.reply import Reply
from ingestd.client.request import Request
from ingestd.client.resources import BulkResult
from ingestd.core.clock import Now
from ingestd.core.outcome import Facts, Fault, classify
from ingestd.core.rate import parse_rate_limit
from ingestd.wire import names
from ingestd.wire.bulk import HEADER as BULK_HEADER
from ingestd.wire.bulk import parse_bulk_limits

T = TypeVar("T")

_REPLAYED = b"idempotent-replayed"
_ACCEPT_ENCODING, _BULK, _REQUEST_ID, _RATE_LIMIT, _RATE_LIMIT_POLICY = (
    name.lower().encode("ascii")
    for name in (names.ACCEPT_ENCODING, BULK_HEADER, names.REQUEST_ID, names.RATE_LIMIT, names.RATE_LIMIT_POLICY)
)
_TOLD = frozenset({_REPLAYED, _ACCEPT_ENCODING, _BULK, _REQUEST_ID, _RATE_LIMIT, _RATE_LIMIT_POLICY})

Fields: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Headers as they came."""

_NO_HEADERS: Mapping[str, str] = {}


class Judgement:
    """Makes replies. ``started`` is of ``clock`` throughout; ``now`` is for Retry-After dates."""

    def __init__(
        self, *, now: Now, retry_after_cap_seconds: float, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.clock = clock
        self._now = now
        self._retry_after_cap_seconds = retry_after_cap_seconds

    def reply(self, request: Request[T], response: httpx.Response, started: float) -> Reply[T]:
        """An answer that was read to its end."""
        if not response.is_success:
            return self._refused(request.operation, response, started)
        return self.success(
            request, response.status_code, response.content, response.headers.raw, started, headers=response.headers
        )

    def success(
        self,
        request: Request[T],
        status: int,
        body: bytes,
        raw: Fields,
        started: float,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Reply[T]:
        """A 2xx, in parts; ``headers`` for a request that reads its answer out of them."""
        operation = request.operation
        try:
            value = request.read(body, headers)
            if request.check is not None:
                request.check(value)
        except (Unreadable, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.unreadable(operation, started, status)
        except Mismatch as mismatch:
            return self.mismatched(operation, started, status, mismatch)
        return self._judged(operation, _facts_of(status, value), started, raw, value=value)

    def done(self, operation: Operation, response: httpx.Response, value: T, started: float) -> Reply[T]:
        """A success whose value is known."""
        return self._judged(
            operation, _facts_of(response.status_code, value), started, response.headers.raw, value=value
        )

    def _refused(self, operation: Operation, response: httpx.Response, started: float) -> Reply[Any]:
        problem = parse_problem(
            response.status_code,
            response.content,
            request_id=response.headers.get(names.REQUEST_ID, ""),
            code=response.headers.get(names.ERROR_CODE, ""),
            content_type=response.headers.get("Content-Type", ""),
        )
        facts = Facts(
            status=response.status_code,
            words=problem.words,
            code=problem.code,
            location=_without_credentials(response.headers.get("Location", "")),
            retry_after=response.headers.get("Retry-After"),
            recognized=problem.recognized,
        )
        return self._judged(operation, facts, started, response.headers.raw, problem=problem)

    def unreadable(self, operation: Operation, started: float, status: int) -> Reply[Any]:
        """A success whose body is not what the operation answers."""
        return self.no_answer(operation, Fault.UNREADABLE, started, status=status)

    def mismatched(self, operation: Operation, started: float, status: int, mismatch: Mismatch) -> Reply[Any]:
        """A success that speaks of something else than was sent or asked for."""
        return self.no_answer(operation, Fault.MISMATCH, started, status=status, words=str(mismatch))

    def no_answer(
        self, operation: Operation, fault: Fault, started: float, *, status: int | None = None, words: str = ""
    ) -> Reply[Any]:
        """No answer, or one that can't be believed."""
        return self._judged(operation, Facts(fault=fault, status=status, words=words), started, ())

    def _judged(
        self,
        operation: Operation,
        facts: Facts,
        started: float,
        raw: Fields,
        *,
        value: Any = None,
        problem: Problem | None = None,
    ) -> Reply[Any]:
        # A lookup in httpx's headers costs as much as this, and most answers tell nothing more.
        told = {name.lower(): text.decode("latin-1") for name, text in raw if name.lower() in _TOLD}
        return Reply(
            operation=operation.name,
            outcome=classify(facts, now=self._now(), retry_after_cap_seconds=self._retry_after_cap_seconds),
            status=facts.status,
            value=value,
            problem=problem,
            facts=facts,
            milliseconds=(self.clock() - started) * 1000,
            bulk=parse_bulk_limits(told[_BULK]) if _BULK in told else None,
            replayed=_REPLAYED in told and told[_REPLAYED].lower() == "true",
            request_id=(problem.request_id if problem else "") or told.get(_REQUEST_ID, ""),
            takes_gzip=_ACCEPT_ENCODING in told and "gzip" in told[_ACCEPT_ENCODING].lower(),
            rate=parse_rate_limit(told.get(_RATE_LIMIT_POLICY), told.get(_RATE_LIMIT)),
        )


@cache
def _plain(status: int) -> Facts:
    """The same value for each of thousands of successes."""
    return Facts(status=status)


def _facts_of(status: int, value: object) -> Facts:
    if isinstance(value, BulkResult) and value.results is not None:
        return Facts(status=status, refused=sum(result.status >= 300 for result in value.results))
    return _plain(status)


def judgement_for_programs() -> Judgement:
    """Of programs, which decide for themselves how long they wait; who asks for more than a day means something else."""
    return Judgement(now=time.time, retry_after_cap_seconds=86_400.0)


def _without_credentials(location: str) -> str:
    """Where a redirect leads: scheme, host and path only."""
    try:
        url = httpx.URL(location)
    except httpx.InvalidURL:
        return ""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None)) if location else ""
