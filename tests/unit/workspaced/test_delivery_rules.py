"""The waiting deliveries that may start now, over random histories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.events.payload import entry_resource, resource_of
from workspaced.resources.webhooks.delivery_rules import Waiting, due_again, must_disable, ready, ready_in_order
from workspaced.settings.workers import DeliverySettings

_RESOURCES = [
    *(entry_resource(sink, key) for sink in ("s1", "s2") for key in ("a", "b/c")),
    resource_of("data_sink.updated", "s1"),
    resource_of("data_sink.updated", "s2"),
    resource_of("block.created", "b1"),
]


@given(
    resources=st.lists(st.sampled_from(_RESOURCES), max_size=30),
    finishing=st.lists(st.integers(0, 29), max_size=60),
    most=st.integers(1, 5),
)
def test_deliveries_that_require_order_keep_it(resources: list[str], finishing: list[int], most: int) -> None:
    waiting = dict(enumerate(resources))
    under_way: list[int] = []
    finished: list[int] = []
    picks = iter([*finishing, *([0] * len(resources))])
    while waiting:
        window = [Waiting(number, waiting[number], 10 if number in under_way else 0) for number in sorted(waiting)]
        chosen = ready(window, now=5, most=most - len(under_way))
        assert len(chosen) + len(under_way) <= most
        assert not set(chosen) & set(under_way)
        under_way += chosen
        assert under_way, "a request can always be sent"
        done = under_way.pop(next(picks) % len(under_way))
        finished.append(done)
        del waiting[done]
    for earlier in range(len(resources)):
        for later in range(earlier + 1, len(resources)):
            if _ordered(resources[earlier], resources[later]):
                assert finished.index(earlier) < finished.index(later)


def _ordered(one: str, other: str) -> bool:
    return one == other or {one, other} in ({entry, sink} for entry in _RESOURCES[:4] for sink in _of(entry))


def _of(entry: str) -> list[str]:
    return [f"data_sink/{entry.split('/')[1]}"]


def test_keys_of_one_sink_are_sent_together_up_to_the_limit() -> None:
    window = [Waiting(number, entry_resource("s", str(number)), 0) for number in range(5)]
    assert ready(window, now=0, most=3) == [0, 1, 2]


def test_in_order_nothing_is_sent_while_the_first_is_in_flight() -> None:
    entry = entry_resource("s", "k")
    assert ready_in_order([Waiting(1, entry, 10), Waiting(2, entry, 0)], now=5, batch=10) == []
    assert ready_in_order([], now=5, batch=10) == []


def test_a_batch_ends_before_an_event_that_is_not_of_an_entry() -> None:
    entry, block = entry_resource("s", "k"), resource_of("block.created", "b")
    window = [Waiting(1, entry, 0), Waiting(2, entry, 0), Waiting(3, block, 0), Waiting(4, entry, 0)]
    assert ready_in_order(window, now=0, batch=10) == [1, 2]
    assert ready_in_order(window[2:], now=0, batch=10) == [3]
    assert ready_in_order(window, now=0, batch=1) == [1]


_LIMITS = DeliverySettings()
_DAY = 86_400_000


def test_the_delays_are_those_of_the_standard() -> None:
    # contract H11
    pauses = [due_again(_LIMITS, tries, now=0, jitter=0.5, retry_after_seconds=None) for tries in range(1, 11)]
    assert pauses[:-1] == [1_000 * s for s in (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)]
    assert pauses[-1] is None


@pytest.mark.parametrize(("jitter", "due"), [(0.0, 4_000), (0.5, 5_000), (1.0, 6_000)])
def test_a_delay_varies_by_a_fifth(jitter: float, due: int) -> None:
    # contract H11
    assert due_again(_LIMITS, 1, now=0, jitter=jitter, retry_after_seconds=None) == due


def test_a_requested_delay_postpones_and_never_shortens() -> None:
    assert due_again(_LIMITS, 1, now=7, jitter=0.5, retry_after_seconds=60) == 60_007
    assert due_again(_LIMITS, 2, now=7, jitter=0.5, retry_after_seconds=60) == 300_007
    assert due_again(_LIMITS, 10, now=7, jitter=0.5, retry_after_seconds=60) is None


@pytest.mark.parametrize(
    ("since", "failures", "given_up"), [(5 * _DAY, 20, True), (5 * _DAY - 1, 20, False), (5 * _DAY, 19, False)]
)
def test_a_webhook_is_disabled_after_five_days_and_twenty_failures(
    since: int, failures: int, *, given_up: bool
) -> None:
    assert must_disable(failing_since=0, failures=failures, now=since) is given_up


def test_the_environment_can_set_the_delays_and_the_lease() -> None:
    limits = DeliverySettings.from_environment(
        {"WORKSPACED_RETRY_SECONDS": "0, 0.5,1", "WORKSPACED_LEASE_SECONDS": "2"}
    )
    assert (limits.retry_seconds, limits.lease_seconds, limits.total_seconds) == ((0, 0.5, 1), 2, 0.5)
    assert DeliverySettings.from_environment({}) == DeliverySettings()


@pytest.mark.parametrize(
    ("name", "text"),
    [("WORKSPACED_RETRY_SECONDS", "0,x"), ("WORKSPACED_RETRY_SECONDS", "-1"), ("WORKSPACED_LEASE_SECONDS", "0")],
)
def test_an_invalid_setting_is_named(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is '{text}'"):
        DeliverySettings.from_environment({name: text})
