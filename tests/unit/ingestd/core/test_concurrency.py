from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.core.concurrency import ROUNDS_BETWEEN_MEASUREMENTS, Concurrency
from tests.support.simulated_service import Simulation

KNEE = 20


def levels_off(in_flight: int) -> float:
    """Throughput is constant from 20 requests in flight on; further requests only wait."""
    return 0.05 * max(1.0, in_flight / KNEE)


def suffers(in_flight: int) -> float:
    """From 20 in flight on, each further request makes all of them slower than sequential ones."""
    return 0.05 * max(1.0, (in_flight / KNEE) ** 2)


def bends(in_flight: int) -> float:
    return 0.05 * (1 + (in_flight / KNEE) ** 4)


def one_by_one(in_flight: int) -> float:
    return 0.02 * in_flight


@pytest.mark.parametrize("latency", [levels_off, suffers, bends, one_by_one])
@pytest.mark.parametrize("seed", [1, 2])
def test_throughput_is_within_a_tenth_of_the_best_fixed_number(latency: Callable[[int], float], seed: int) -> None:
    best = max(Simulation(latency=latency).run(seconds=5, fixed=number) for number in range(1, 41))
    throughput = Simulation(latency=latency, seed=seed, jitter=0.3).run(seconds=30, measured_from=12)
    assert throughput >= 0.9 * best


def test_the_limit_starts_at_one_and_grows_by_one_a_round() -> None:
    state = Concurrency(at_most=10)
    limits = [state.limit]
    for _ in range(31):
        state = state.after_response(0.05, in_flight=state.limit)
        limits.append(state.limit)
    # A round is as many responses as requests are in flight, at least five.
    assert limits == [*[1] * 5, *[2] * 5, *[3] * 5, *[4] * 5, *[5] * 5, *[6] * 6, 7]


def test_the_latency_is_measured_with_half_of_the_requests_after_some_rounds() -> None:
    state = Concurrency(at_most=4, allowed=4)
    responses = 0
    while not state.measuring:
        state = state.after_response(0.05, in_flight=4)
        responses += 1
    assert (responses, state.limit) == (5 * ROUNDS_BETWEEN_MEASUREMENTS, 2)


def test_a_limit_that_is_not_used_does_not_grow() -> None:
    state = Concurrency(at_most=10, allowed=4)
    for _ in range(100):
        state = state.after_response(0.05, in_flight=1)
    assert state.allowed == 4


def test_rejections_of_one_round_lower_the_limit_once() -> None:
    state = Concurrency(at_most=100, allowed=20)
    for _ in range(8):
        state = state.after_refusal()
    assert state.limit == 14
    for _ in range(14):
        state = state.after_response(0.05, in_flight=14)
    assert state.after_refusal().limit == 9


def test_a_permanently_slower_service_becomes_the_new_baseline() -> None:
    state = Concurrency(at_most=100)
    for _ in range(2_000):
        state = state.after_response(levels_off(state.limit), in_flight=state.limit)
    for _ in range(6_000):
        state = state.after_response(4 * levels_off(state.limit), in_flight=state.limit)
    assert state.base_seconds == pytest.approx(0.2, rel=0.2)
    assert 15 <= state.allowed <= 30


def test_latencies_near_zero_do_not_lower_the_limit() -> None:
    state = Concurrency(at_most=32)
    for _ in range(2_000):
        state = state.after_response(0.0001 * state.limit, in_flight=state.limit)
    assert state.allowed == 32


def test_small_requests_do_not_make_large_ones_appear_slow() -> None:
    state = Concurrency(at_most=32)
    for number in range(400):
        small = number % 2
        state = state.after_response(0.01 if small else 0.2, in_flight=state.limit, size=10 if small else 5_000)
    assert state.base_seconds == pytest.approx(0.2)


@settings(max_examples=200)
@given(
    at_most=st.integers(1, 64),
    responses=st.lists(
        st.tuples(st.booleans(), st.floats(0, 60), st.integers(1, 64), st.integers(1, 5_000)), max_size=200
    ),
)
def test_the_limit_is_at_least_one_and_at_most_the_configured_one_for_all_responses(
    at_most: int, responses: list[tuple[bool, float, int, int]]
) -> None:
    state = Concurrency(at_most=at_most)
    for refused, seconds, in_flight, size in responses:
        before = state.allowed
        state = state.after_refusal() if refused else state.after_response(seconds, in_flight=in_flight, size=size)
        assert 1 <= state.limit <= at_most
        assert state.allowed <= before + 1
