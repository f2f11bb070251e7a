from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.set_seconds import SetSeconds
from workspaced.security import rate_limits
from workspaced.security.rate_limits import Policy, RateLimit
from workspaced.security.trusted_proxies import Proxies
from workspaced.settings.model import visible_id_prefix


def test_a_burst_is_permitted_then_one_request_for_each_refilled_token() -> None:
    clock = SetSeconds()
    limit = RateLimit(Policy("default", 60, 3), clock=clock)
    assert [limit.take("a").allowed for _ in range(5)] == [True, True, True, False, False]
    assert limit.take("b").allowed
    clock.now += 1
    assert [limit.take("a").allowed for _ in range(2)] == [True, False]
    clock.now += 1_000
    assert [limit.take("a").allowed for _ in range(4)] == [True, True, True, False]


def test_the_headers_have_the_policy_and_the_remaining_requests() -> None:
    clock = SetSeconds()
    limit = RateLimit(Policy("default", 1_200, 200), clock=clock)
    first = limit.take("a")
    assert dict(first.headers) == {
        "RateLimit-Policy": '"default";q=1200;w=60',
        "RateLimit": '"default";r=199;t=1',
    }
    *_, last = [limit.take("a") for _ in range(199)]
    assert dict(last.headers)["RateLimit"] == '"default";r=0;t=1'
    refused = limit.take("a")
    assert (refused.allowed, refused.retry_seconds) == (False, 1)
    slow = RateLimit(Policy("x", 2, 1), clock=clock)
    slow.take("a")
    assert (slow.look("a").allowed, slow.look("a").retry_seconds) == (False, 30)


def test_reading_uses_no_token_and_zero_is_no_limit() -> None:
    clock = SetSeconds()
    limit = RateLimit(Policy("x", 60, 1), clock=clock)
    assert all(limit.look("a").allowed for _ in range(5))
    none = RateLimit(Policy("x", 0, 1), clock=clock)
    assert all(none.take("a").allowed for _ in range(1_000))
    assert none.take("a").headers == ()


@given(st.lists(st.floats(0, 5), max_size=200), st.integers(1, 600), st.integers(1, 20))
def test_no_interval_has_more_than_the_burst_and_the_refilled_requests(
    pauses: list[float], per_minute: int, burst: int
) -> None:
    clock = SetSeconds()
    limit = RateLimit(Policy("x", per_minute, burst), clock=clock)
    allowed = 0
    for pause in pauses:
        clock.now += pause
        allowed += limit.take("a").allowed
    assert allowed <= burst + (clock.now - 1_000) * per_minute / 60 + 1e-6
    assert allowed >= min(len(pauses), burst)


def test_any_number_of_callers_needs_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "REMEMBERED", 100)
    clock = SetSeconds()
    limit = RateLimit(Policy("x", 1, 5), clock=clock)
    for number in range(1_000):
        limit.take(f"caller {number}")
        limit.take("regular")
    assert len(limit._buckets) <= 101
    assert not limit.take("regular").allowed


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("203.0.113.1", "198.51.100.1", "203.0.113.1"),
        ("10.0.0.1", "2001:DB8::1", "2001:db8::1"),
        ("", "198.51.100.1", ""),
    ],
)
def test_only_known_proxies_are_trusted(peer: str, forwarded: str | None, expected: str) -> None:
    # contract P6
    proxies = Proxies.from_environment({"WORKSPACED_TRUSTED_PROXIES": "10.0.0.0/8, fd00::/8"})
    assert proxies.caller(peer, forwarded) == expected


def test_without_proxies_no_forwarded_address_is_trusted() -> None:
    # contract P6
    assert Proxies.from_environment({}).caller("10.0.0.1", "198.51.100.1") == "10.0.0.1"
    with pytest.raises(ValueError, match="WORKSPACED_TRUSTED_PROXIES contains 'x', which is not a network"):
        Proxies.from_environment({"WORKSPACED_TRUSTED_PROXIES": "10.0.0.1,x"})


def test_a_prefix_consists_of_letters() -> None:
    assert visible_id_prefix({"WORKSPACED_VISIBLE_ID_PREFIX": "abc"}) == "ABC"
    assert visible_id_prefix({}) == ""
    for text in ("A1", "ABCDEFGHI", "Ä"):
        with pytest.raises(ValueError, match="WORKSPACED_VISIBLE_ID_PREFIX"):
            visible_id_prefix({"WORKSPACED_VISIBLE_ID_PREFIX": text})
