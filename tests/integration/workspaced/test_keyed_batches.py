"""Keyed requests in one batch: each gets the response that it would get alone (contract G18)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from workspaced.core.problems import ConflictProblem, Problem, UnavailableProblem
from workspaced.http.idempotency import IdempotencySlot, make_idempotent
from workspaced.http.operations import Work
from workspaced.http.responses import Response
from workspaced.security.secret_box import SecretBox
from workspaced.storage.address import Address
from workspaced.storage.batchable import BatchableWork, run_batches
from workspaced.storage.factory import transact
from workspaced.storage.port import Transaction

pytestmark = pytest.mark.both_databases

_NOW = 1_000_000
_KEEP = 1_000
_BOX = SecretBox(b"k" * 32)


@dataclass(frozen=True)
class _Put(BatchableWork[Response]):
    """Counts how often it was applied; the response has the count."""

    name: str
    runs: list[str]
    fail: Problem | None = None
    leave: bool = False

    @property
    def kind(self) -> str:
        return "put"

    def __call__(self, tx: Transaction, /) -> Response:
        tx.run("INSERT INTO fixed_setting (name, value) VALUES (:name, 'v')", {"name": self.name})
        self.runs.append(self.name)
        if self.fail:
            raise self.fail
        return Response(status=201, headers=(("X-Name", self.name),), body=b"alone")

    def together(self, tx: Transaction, pieces: Sequence[_Put], /) -> Sequence[Response | None]:
        responses: list[Response | None] = []
        for piece in pieces:
            if piece.fail or piece.leave:
                responses.append(None)
            else:
                responses.append(Response(status=201, headers=(("X-Name", piece(tx).headers[0][1]),), body=b"together"))
        return responses


def _keyed(put: _Put, key: str, *, content: str = "", now: int = _NOW, box: SecretBox | None = None) -> Any:
    """Return the work of a request with an Idempotency-Key."""
    slot = IdempotencySlot(
        digest=hashlib.sha256(key.encode()).digest(),
        fingerprint=hashlib.sha256((content or put.name).encode()).digest(),
    )
    work = Work(act=put, secret_box=box)
    return make_idempotent(
        work, slot, now=now, keep_ms=_KEEP, refused=lambda problem: Response(status=problem.status)
    ).act


def _done(address: Address, *works: Callable[[Transaction], Response]) -> list[Any]:
    """Apply the works in one transaction; return status and body, or the code of the problem, and whether it was replayed."""

    def all_of(tx: Transaction) -> list[Any]:
        def attempt(work: Callable[[Transaction], Any]) -> tuple[Any, BaseException | None]:
            try:
                with tx.nested():
                    return work(tx), None
            except Problem as problem:
                return None, problem

        return [
            error.code
            if isinstance(error, Problem)
            else (response.status, bytes(response.body), _is_replayed(response))
            for response, error in run_batches(works, attempt)
        ]

    return transact(address, all_of)


def _is_replayed(response: Response) -> bool:
    return ("Idempotent-Replayed", "true") in response.headers


def _stored(address: Address) -> int:
    rows = transact(address, lambda tx: tx.all("SELECT slot FROM idempotent_response"))
    return len(rows)


def test_keyed_work_of_a_kind_is_applied_together_and_repeated_from_its_responses(address: Address) -> None:
    runs: list[str] = []
    for replayed in (False, True):
        works = [_keyed(_Put(name, runs), f"key {name}") for name in "abc"]
        assert _done(address, *works) == [(201, b"together", replayed)] * 3
    assert runs == ["a", "b", "c"]
    assert _stored(address) == 3


def test_a_replay_has_the_headers_of_the_first_response(address: Address) -> None:
    runs: list[str] = []
    _done(address, *(_keyed(_Put(name, runs), name) for name in "ab"))
    replay = transact(address, _keyed(_Put("b", runs), "b"))
    assert replay.headers == (("X-Name", "b"), ("Idempotent-Replayed", "true"))


def test_a_batch_of_new_and_repeated_requests_applies_only_the_new_ones(address: Address) -> None:
    runs: list[str] = []
    assert _done(address, _keyed(_Put("a", runs), "1")) == [(201, b"alone", False)]
    works = [_keyed(_Put(name, runs), key) for name, key in (("b", "2"), ("a", "1"), ("c", "3"))]
    assert _done(address, *works) == [(201, b"together", False), (201, b"alone", True), (201, b"together", False)]
    assert runs == ["a", "b", "c"]


def test_a_key_repeated_within_one_batch_is_applied_once(address: Address) -> None:
    runs: list[str] = []
    works = [_keyed(_Put(name, runs), key) for name, key in (("a", "1"), ("b", "2"), ("a", "1"))]
    first, second, repetition = _done(address, *works)
    assert (first, second) == ((201, b"together", False), (201, b"together", False))
    assert repetition == (201, b"together", True)
    assert runs == ["a", "b"]


def test_a_key_with_another_content_fails_alone(address: Address) -> None:
    runs: list[str] = []
    _done(address, _keyed(_Put("old", runs), "1"))
    works = [
        _keyed(_Put("a", runs), "2"),
        _keyed(_Put("new", runs), "1"),
        _keyed(_Put("b", runs), "3"),
        _keyed(_Put("c", runs), "3", content="another"),
    ]
    assert _done(address, *works) == [
        (201, b"together", False),
        "idempotency_key_reused",
        (201, b"together", False),
        "idempotency_key_reused",
    ]
    assert runs == ["old", "a", "b"]


def test_a_rejected_request_of_a_batch_has_its_own_stored_response(address: Address) -> None:
    runs: list[str] = []
    refusing = _keyed(_Put("b", runs, fail=ConflictProblem("taken", "It is taken.")), "2")
    works = [_keyed(_Put("a", runs), "1"), refusing, _keyed(_Put("c", runs), "3")]
    assert _done(address, *works) == [(201, b"together", False), (409, b"", False), (201, b"together", False)]
    assert _done(address, refusing) == [(409, b"", True)]
    assert runs == ["a", "c", "b"]
    rows = transact(address, lambda tx: tx.all("SELECT name FROM fixed_setting WHERE name = 'b'"))
    assert rows == []


def test_an_error_of_the_service_is_not_stored(address: Address) -> None:
    runs: list[str] = []
    broken = _keyed(_Put("b", runs, fail=UnavailableProblem("away", "It is away.")), "2")
    works = [_keyed(_Put("a", runs), "1"), broken, _keyed(_Put("c", runs), "3")]
    assert _done(address, *works)[1] == "away"
    assert _stored(address) == 2
    assert _done(address, _keyed(_Put("b", runs), "2")) == [(201, b"alone", False)]


def test_an_expired_response_is_replaced(address: Address) -> None:
    runs: list[str] = []
    _done(address, _keyed(_Put("a", runs), "1"), _keyed(_Put("b", runs), "2"))
    later = _NOW + _KEEP
    works = [_keyed(_Put(name, runs), key, now=later) for name, key in (("c", "1"), ("d", "3"), ("e", "4"))]
    assert _done(address, *works) == [(201, b"alone", False), (201, b"together", False), (201, b"together", False)]
    assert _done(address, _keyed(_Put("c", runs), "1", now=later)) == [(201, b"alone", True)]


def test_the_secrets_of_a_batch_are_stored_encrypted(address: Address) -> None:
    runs: list[str] = []
    for replayed in (False, True):
        works = [_keyed(_Put(name, runs), name, box=_BOX) for name in "ab"]
        assert _done(address, *works) == [(201, b"together", replayed)] * 2
    rows = transact(address, lambda tx: tx.all("SELECT body FROM idempotent_response"))
    assert len(rows) == 2
    assert all(b"together" not in bytes(body) for (body,) in rows)


@pytest.mark.parametrize("count", [2, 3, 64, 300])
def test_batches_of_any_size_are_stored_and_found(address: Address, count: int) -> None:
    runs: list[str] = []
    for replayed in (False, True):
        works = [_keyed(_Put(f"n{number}", runs), f"key {number}") for number in range(count)]
        assert _done(address, *works) == [(201, b"together", replayed)] * count
    assert len(runs) == count
