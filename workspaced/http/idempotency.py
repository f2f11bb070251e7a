"""Idempotency-Key on POST (contract G18): the response is stored in the transaction that does the work.

The responses of the body's validation and of all later steps are stored. Earlier refusals (401, 413, 415) are decided again.
A 403 is not stored, because permissions change; a 5xx is not stored, because it changed nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Self

import msgspec

from ingestd.wire import names
from workspaced.core.problems import ConflictProblem, ForbiddenProblem, Invalid, Problem, UnprocessableProblem
from workspaced.http.operations import Call, Work
from workspaced.http.responses import Response
from workspaced.storage import idempotency
from workspaced.storage.batchable import BatchableWork
from workspaced.storage.idempotency import StoredResponse
from workspaced.storage.port import Transaction

_FORM = re.compile(r'(?:"([\x20-\x21\x23-\x7e]{1,255})"|([\x21\x23-\x7e][\x20-\x7e]{0,254}))', re.ASCII)


class IdempotencySlot(msgspec.Struct, frozen=True, kw_only=True):
    """``digest`` is the key of the stored response. ``fingerprint`` identifies the content of the request."""

    digest: bytes
    fingerprint: bytes


def slot_of(call: Call, query_string: bytes) -> IdempotencySlot | None:
    """Return the slot for the request's Idempotency-Key; None without this header.

    Raises:
        Invalid: the header is neither a bare nor a quoted text of 1 to 255 printable characters.
    """
    header = call.headers.get(names.IDEMPOTENCY_KEY)
    if header is None:
        return None
    match = _FORM.fullmatch(header.strip())
    if not match:
        raise Invalid("bad_idempotency_key", "Idempotency-Key must have 1 to 255 printable ASCII characters.")
    scope = "\n".join((call.key_id, "POST", call.path, match[1] or match[2]))
    return IdempotencySlot(
        digest=hashlib.sha256(scope.encode()).digest(),
        fingerprint=hashlib.sha256(query_string + b"\n" + call.body).digest(),
    )


def with_body_digest(slot: IdempotencySlot, digest: bytes) -> IdempotencySlot:
    """Return the slot of a request with a streamed body, after the digest of the body is known."""
    return msgspec.structs.replace(slot, fingerprint=hashlib.sha256(slot.fingerprint + digest).digest())


def is_stored(problem: Problem) -> bool:
    """Return whether a refusal is stored: not a 403, because permissions may change, and not a 5xx, which changed nothing."""
    return problem.status < 500 and problem.status != ForbiddenProblem.status


def make_idempotent(
    work: Work, slot: IdempotencySlot, *, now: int, keep_ms: int, refused: Callable[[Problem], Response]
) -> Work:
    """Return work that is done at most once for its slot; a repetition gets the stored response.

    Batchable work stays batchable: the members of a batch share the look-up and the storing of their responses.
    """
    since = now - keep_ms
    if isinstance(work.act, BatchableWork):
        return msgspec.structs.replace(work, act=_BatchableIdempotentWork(work, slot, now, since, refused, work.act))
    return msgspec.structs.replace(work, act=_IdempotentWork(work, slot, now, since, refused))


@dataclass(slots=True, eq=False)  # not frozen: creating a frozen instance takes three times as long
class _IdempotentWork:
    """Work of a request with an Idempotency-Key. Responses stored at or before ``since`` (milliseconds) have expired."""

    work: Work
    slot: IdempotencySlot
    now: int
    since: int
    refused: Callable[[Problem], Response]

    def __call__(self, tx: Transaction, /) -> Response:
        """Do the work, or return the stored response.

        Raises:
            UnprocessableProblem: the key was used for a request with different content.
            Problem: the work failed with a status that is not stored (`is_stored`).
        """
        stored = idempotency.find(tx, self.slot.digest, since=self.since)
        if stored is not None:
            return self.replay(stored)
        try:
            with tx.nested():
                response = self.work.act(tx)
        except Problem as problem:
            if not is_stored(problem):
                raise
            response = self.refused(problem)
        idempotency.save(tx, self.slot.digest, self.to_store(response), since=self.since)
        return response

    def is_repetition_of(self, stored: StoredResponse) -> bool:
        """Return whether the stored response is for a request with the same content."""
        return stored.fingerprint == self.slot.fingerprint

    def replay(self, stored: StoredResponse) -> Response:
        """Return the stored response.

        Raises:
            UnprocessableProblem: the stored response is for a request with different content.
        """
        if not self.is_repetition_of(stored):
            raise UnprocessableProblem(
                "idempotency_key_reused", "This Idempotency-Key was used before for a request with another content."
            )
        box = self.work.secret_box
        body = box.open(stored.body, purpose=self._purpose()) if box else stored.body
        return Response(status=stored.status, headers=(*stored.headers, ("Idempotent-Replayed", "true")), body=body)

    def to_store(self, response: Response) -> StoredResponse:
        """Return the stored form of a response; encrypted if it contains a secret."""
        box = self.work.secret_box
        return StoredResponse(
            fingerprint=self.slot.fingerprint,
            status=response.status,
            headers=response.headers,
            body=box.seal(response.body, purpose=self._purpose()) if box else response.body,
            created_at=self.now,
        )

    def _purpose(self) -> str:
        return f"response/{self.slot.digest.hex()}"


@dataclass(slots=True, eq=False)
class _BatchableIdempotentWork(_IdempotentWork, BatchableWork[Response]):
    """Like `_IdempotentWork`, for work that shares its statements with other work; ``batchable`` is ``work.act``."""

    batchable: BatchableWork[Response]

    @property
    def kind(self) -> Hashable:
        """Return the kind of ``batchable``, marked as work with an Idempotency-Key."""
        return _BatchableIdempotentWork, self.batchable.kind

    def together(self, tx: Transaction, pieces: Sequence[Self], /) -> Sequence[Response | None]:
        """Replay repetitions; do the work of new requests together and store their responses.

        The result is None for work that must run alone: a second request of a slot, a key that was used for different content,
        a slot with an expired response, and work for which ``batchable.together`` returns None. So each failure belongs to its
        own request.

        Raises:
            Problem: the work of at least one request failed.
        """
        responses: list[Response | None] = [None] * len(pieces)
        stored = idempotency.find_each(tx, {piece.slot.digest for piece in pieces})
        new: dict[bytes, int] = {}
        for place, piece in enumerate(pieces):
            found = stored.get(piece.slot.digest)
            if found is None:
                new.setdefault(piece.slot.digest, place)
            elif found.created_at > piece.since and piece.is_repetition_of(found):
                responses[place] = piece.replay(found)
        if len(new) < 2:
            return responses
        batch = [pieces[place].batchable for place in new.values()]
        done = batch[0].together(tx, batch)
        to_store: dict[bytes, StoredResponse] = {}
        for place, response in zip(new.values(), done, strict=True):
            responses[place] = response
            if response is not None:
                to_store[pieces[place].slot.digest] = pieces[place].to_store(response)
        if to_store:
            idempotency.save_each(tx, to_store, since=min(piece.since for piece in pieces))
        return responses


class InFlight:
    """The keys of the requests that this process is handling. A second request with the same key is refused."""

    def __init__(self, refusal: str) -> None:
        """``refusal`` is the sentence of the refusal."""
        self._refusal = refusal
        self._keys: set[Hashable] = set()

    def claim(self, key: Hashable | None) -> AbstractContextManager[None]:
        """Hold the key, if any, until the context ends.

        Raises:
            ConflictProblem: an earlier request with the same key has no response yet; raised when the context is entered.
        """
        return _NO_KEY if key is None else _HeldKey(self._keys, key, self._refusal)


class _HeldKey(AbstractContextManager[None]):
    """The claim of one request. This is a class, because a generator function takes twice as long."""

    __slots__ = ("_key", "_keys", "_refusal")

    def __init__(self, keys: set[Hashable], key: Hashable, refusal: str) -> None:
        self._keys = keys
        self._key = key
        self._refusal = refusal

    def __enter__(self) -> None:
        if self._key in self._keys:
            raise ConflictProblem("request_in_progress", self._refusal)
        self._keys.add(self._key)

    def __exit__(self, *_: object) -> None:
        self._keys.discard(self._key)


_NO_KEY = nullcontext()
