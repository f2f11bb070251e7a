"""Idempotency-Key on POST (contract G18): the answer is kept in the transaction that does the work.

Kept are answers from the check of the body on. What is refused earlier (401, 403, 413, 415) is decided again each time,
and so is a 5xx, after which nothing was changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from ingestd.wire import names
from workspaced.core.problems import Conflict, Invalid, Problem, Unprocessable
from workspaced.http.operations import Call, Sealing, Work
from workspaced.http.responses import Response
from workspaced.storage import idempotency
from workspaced.storage.idempotency import StoredResponse
from workspaced.storage.port import Transaction

_FORM = re.compile(r'(?:"([\x20-\x21\x23-\x7e]{1,255})"|([\x21\x23-\x7e][\x20-\x7e]{0,254}))', re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where a request's answer is kept, and the digest that tells whether a repetition is the same request."""

    digest: bytes
    fingerprint: bytes


def slot_of(call: Call, query_string: bytes) -> Slot | None:
    """The slot that the header names; None without the header.

    Raises:
        Invalid: the header is neither a bare nor a quoted text of 1 to 255 printable characters.
    """
    header = call.headers.get(names.IDEMPOTENCY_KEY)
    if header is None:
        return None
    match = _FORM.fullmatch(header.strip())
    if not match:
        raise Invalid("bad_idempotency_key", "Idempotency-Key must have 1 to 255 printable ASCII characters.")
    caller = call.principal.key_id if call.principal else ""
    scope = "\n".join((caller, "POST", call.path, match[1] or match[2]))
    return Slot(
        digest=hashlib.sha256(scope.encode()).digest(),
        fingerprint=hashlib.sha256(query_string + b"\n" + call.body).digest(),
    )


def of_streamed(slot: Slot, digest: bytes) -> Slot:
    """The slot of a request whose body came in pieces, now that its digest is known."""
    return dataclasses.replace(slot, fingerprint=hashlib.sha256(slot.fingerprint + digest).digest())


def once(work: Work, slot: Slot, *, now: int, keep_ms: int, refused: Callable[[Problem], Response]) -> Work:
    """The work, done at most once for its slot; a repetition gets the kept answer."""
    since = now - keep_ms

    def act(tx: Transaction) -> Response:
        kept = idempotency.find(tx, slot.digest, since=since)
        if kept is not None:
            return _replayed(kept, slot, work.secret_box)
        try:
            with tx.nested():
                answer = work.act(tx)
        except Problem as problem:
            if problem.status >= 500:
                raise
            answer = refused(problem)
        body = work.secret_box.seal(answer.body, purpose=_purpose(slot)) if work.secret_box else answer.body
        keep = StoredResponse(fingerprint=slot.fingerprint, status=answer.status, headers=answer.headers, body=body)
        idempotency.save(tx, slot.digest, keep, now=now, since=since)
        return answer

    return dataclasses.replace(work, act=act)


def _purpose(slot: Slot) -> str:
    return f"answer/{slot.digest.hex()}"


def _replayed(kept: StoredResponse, slot: Slot, secret_box: Sealing | None) -> Response:
    if kept.fingerprint != slot.fingerprint:
        raise Unprocessable(
            "idempotency_key_reused", "This Idempotency-Key was used before for a request with another content."
        )
    body = secret_box.open(kept.body, purpose=_purpose(slot)) if secret_box else kept.body
    return Response(status=kept.status, headers=(*kept.headers, ("Idempotent-Replayed", "true")), body=body)


class InFlight:
    """The slots whose requests this process is working on."""

    def __init__(self) -> None:
        self._slots: set[bytes] = set()

    def claim(self, slot: Slot | None) -> AbstractContextManager[None]:
        """Hold the slot, if there is one, for the block.

        Raises:
            Conflict: an earlier request with the same key is not answered yet; on entering the block.
        """
        return self._held(slot) if slot else _NOTHING_TO_HOLD

    @contextmanager
    def _held(self, slot: Slot) -> Iterator[None]:
        if slot.digest in self._slots:
            raise Conflict("request_in_progress", "A request with this Idempotency-Key is still in progress.")
        self._slots.add(slot.digest)
        try:
            yield
        finally:
            self._slots.discard(slot.digest)


_NOTHING_TO_HOLD = nullcontext()
