from __future__ import annotations

import pytest

from workspaced.resources.webhooks.retry_rules import due_again, must_disable
from workspaced.settings.workers import DeliverySettings

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
