from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.rate import Announced, Rate, parse_rate_limit
from tests.support.simulated_service import SimulatedResponse, Simulation


def fast(in_flight: int) -> float:
    return 0.02 * max(1.0, in_flight / 20)


@dataclass(slots=True, kw_only=True)
class Bucket:
    """A token bucket; ``announces``: each response has the number of remaining tokens."""

    per_second: float
    burst: float
    announces: bool = False
    retry_after: float | None = 1.0
    tokens: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = self.burst

    def __call__(self, now: float) -> SimulatedResponse:
        now = max(now, self.at)
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        allowed = self.tokens >= 1
        self.tokens -= allowed
        announced = Announced(
            remaining=int(self.tokens), reset_seconds=1, quota=int(self.per_second * 60), window_seconds=60
        )
        return SimulatedResponse(
            refused=not allowed,
            retry_after_seconds=None if allowed else self.retry_after,
            announced=announced if self.announces else None,
        )


@dataclass(slots=True, kw_only=True)
class Window:
    """The number of requests in every window; further ones are rejected until the next window."""

    quota: int
    seconds: float = 1.0
    number: int = -1
    count: int = 0

    def __call__(self, now: float) -> SimulatedResponse:
        if (number := int(now / self.seconds)) != self.number:
            self.number, self.count = number, 0
        self.count += 1
        if self.count <= self.quota:
            return SimulatedResponse()
        return SimulatedResponse(refused=True, retry_after_seconds=(number + 1) * self.seconds - now)


@pytest.mark.parametrize(
    ("service", "per_second"),
    [
        (lambda: Bucket(per_second=100, burst=10), 100),
        (lambda: Bucket(per_second=100, burst=10, retry_after=None), 100),
        (lambda: Bucket(per_second=20, burst=200, announces=True), 20),
        (lambda: Window(quota=100), 100),
        (lambda: Window(quota=500, seconds=10), 50),
        (lambda: Bucket(per_second=2, burst=2), 2),
    ],
    ids=["bucket", "bucket without Retry-After", "announced", "window", "long window", "two a second"],
)
def test_less_than_a_twentieth_is_rejected_after_adapting_and_most_of_the_rate_is_used(
    service: Callable[[], Callable[[float], SimulatedResponse]], per_second: float
) -> None:
    simulation = Simulation(latency=fast, classify=service())
    reached = simulation.run(seconds=90, measured_from=30)
    assert simulation.refused / (simulation.refused + simulation.accepted) < 0.05
    assert reached >= 0.7 * per_second


def test_a_service_that_announces_its_limit_rejects_nothing() -> None:
    simulation = Simulation(latency=fast, classify=Bucket(per_second=20, burst=200, announces=True))
    assert simulation.run(seconds=60) >= 20
    assert simulation.refused == 0


@pytest.mark.parametrize(
    ("policy", "state", "found"),
    [
        (
            '"default";q=1200;w=60',
            '"default";r=17;t=4',
            Announced(remaining=17, reset_seconds=4, quota=1200, window_seconds=60),
        ),
        (None, '"default";r=0;t=4', Announced(remaining=0, reset_seconds=4)),
        (
            "100;w=60",
            "limit=100, remaining=50, reset=5",
            Announced(remaining=50, reset_seconds=5, quota=100, window_seconds=60),
        ),
        (
            '"a";q=5;w=1, "b";q=9;w=60',
            '"a";r=1;t=1, "b";r=8;t=9',
            Announced(remaining=1, reset_seconds=1, quota=5, window_seconds=1),
        ),
        (None, None, None),
        ("", "soon", None),
    ],
)
def test_both_forms_of_the_headers_are_read(policy: str | None, state: str | None, found: Announced | None) -> None:
    assert parse_rate_limit(policy, state) == found


def test_nothing_is_sent_before_the_announced_time() -> None:
    rate = Rate().after_request(0).after_refusal(None, retry_after_seconds=7, in_flight=3, now=1)
    assert rate.wait_seconds(1) == 7
    assert rate.after_refusal(None, retry_after_seconds=1, in_flight=2, now=2).wait_seconds(2) == 6


def test_an_idle_period_does_not_lower_the_estimated_rate() -> None:
    rate = Rate()
    for second in range(20):
        rate = rate.after_request(second / 100).after_response(None, in_flight=0, now=second / 100)
    for number in range(20):
        rate = rate.after_request(3_600 + number / 100).after_response(None, in_flight=0, now=3_600 + number / 100)
    assert rate.after_refusal(None, retry_after_seconds=0, in_flight=0, now=3_600.2).per_second is None
    rate = rate.after_refusal(None, retry_after_seconds=0.01, in_flight=0, now=3_600.2)
    assert rate.per_second == pytest.approx(90, rel=0.1)


def test_a_low_learned_rate_does_not_permit_a_burst_after_an_idle_period() -> None:
    rate = Rate()
    for second in range(10):
        rate = rate.after_request(second / 2).after_response(None, in_flight=0, now=second / 2)
    rate = rate.after_refusal(None, retry_after_seconds=1, in_flight=0, now=5)
    rate = rate.after_request(10).after_response(None, in_flight=0, now=10)
    assert rate.after_request(3_600).wait_seconds(3_600) > 0


@given(policy=st.text(max_size=40), state=st.text(max_size=40))
def test_any_text_in_the_headers_is_tolerated(policy: str, state: str) -> None:
    announced = parse_rate_limit(policy, state)
    rate = Rate().after_request(0).after_response(announced, in_flight=0, now=1)
    assert rate.wait_seconds(1) >= 0


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["request", "response", "refusal", "announced"]), st.floats(0, 100), st.integers(0, 500)
        ),
        max_size=100,
    )
)
def test_every_wait_ends(steps: list[tuple[str, float, int]]) -> None:
    rate, now = Rate(), 0.0
    for what, seconds, number in steps:
        now += seconds
        match what:
            case "request":
                rate = rate.after_request(now)
            case "response":
                rate = rate.after_response(None, in_flight=number, now=now)
            case "refusal":
                rate = rate.after_refusal(None, retry_after_seconds=seconds, in_flight=number, now=now)
            case _:
                announced = Announced(remaining=number, reset_seconds=seconds, quota=100, window_seconds=60)
                rate = rate.after_response(announced, in_flight=0, now=now)
        wait = rate.wait_seconds(now)
        assert 0 <= wait < float("inf")
        assert rate.wait_seconds(now + wait + 1e-6) <= 1e-6
