from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingestd.core.backoff import Backoff


@given(failures=st.integers(1, 10_000), jitter=st.floats(0, 1, exclude_max=True))
def test_a_delay_is_within_its_ceiling_and_the_cap(failures: int, jitter: float) -> None:
    backoff = Backoff(base_seconds=0.5, cap_seconds=30)
    assert 0 <= backoff.delay(failures, jitter) <= backoff.ceiling(failures) <= 30


def test_the_ceiling_doubles_until_the_cap() -> None:
    backoff = Backoff(base_seconds=1, cap_seconds=10)
    assert [backoff.ceiling(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]
