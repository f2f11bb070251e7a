from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.backoff import Backoff
from ingestd.core.breaker import FAILURES_TO_OPEN, Breaker

BACKOFF = Backoff(base_seconds=1, cap_seconds=30)


def tripped(now: float = 0) -> Breaker:
    breaker = Breaker()
    for _ in range(FAILURES_TO_OPEN):
        breaker = breaker.after_failure(now, BACKOFF, 1)
    return breaker


def test_consecutive_failures_open_the_breaker_and_a_response_resets_the_count() -> None:
    breaker = Breaker()
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker = breaker.after_failure(0, BACKOFF, 1)
    assert not breaker.is_open
    assert not breaker.after_response().after_failure(0, BACKOFF, 1).is_open
    assert breaker.after_failure(0, BACKOFF, 1).is_open


def test_one_probe_is_permitted_when_the_wait_is_over() -> None:
    breaker = tripped()
    assert breaker.decide(0.5) == "wait"
    assert breaker.decide(1) == "probe"
    assert breaker.with_probe().decide(1) == "wait"
    assert breaker.with_probe().without_probe().decide(1) == "probe"


def test_a_response_to_the_probe_closes_the_breaker_and_a_failure_extends_the_wait() -> None:
    breaker = tripped().with_probe()
    assert breaker.after_response() == Breaker()
    again = breaker.after_failure(1, BACKOFF, 1)
    assert again.until == 3
    assert again.decide(2.9) == "wait"


def test_late_failures_of_earlier_requests_do_not_extend_the_wait() -> None:
    breaker = tripped()
    assert breaker.after_failure(0.5, BACKOFF, 1) == breaker


def test_a_requested_wait_is_respected() -> None:
    breaker = tripped().with_probe().after_failure(1, BACKOFF, 0, retry_after_seconds=60)
    assert breaker.until == 61


@given(outcomes=st.lists(st.tuples(st.sampled_from(["failed", "responded", "turn"]), st.floats(0, 60)), max_size=100))
def test_there_is_at_most_one_probe_and_always_a_next_one(outcomes: list[tuple[str, float]]) -> None:
    breaker, now, probes = Breaker(), 0.0, 0
    for what, seconds in outcomes:
        now += seconds
        match what:
            case "failed":
                breaker = breaker.after_failure(now, BACKOFF, 0.5)
                probes = int(breaker.probing)
            case "responded":
                breaker, probes = breaker.after_response(), 0
            case _ if breaker.decide(now) == "probe":
                breaker, probes = breaker.with_probe(), probes + 1
        assert probes <= 1
        if breaker.until is not None and not breaker.probing:
            assert breaker.until - now <= BACKOFF.cap_seconds
            assert breaker.decide(breaker.until) == "probe"
