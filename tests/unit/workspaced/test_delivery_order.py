"""The waiting deliveries that may start now, over random histories."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workspaced.events.payload import entry_resource, resource_of
from workspaced.resources.webhooks.delivery_order import Waiting, ready, ready_in_order

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
