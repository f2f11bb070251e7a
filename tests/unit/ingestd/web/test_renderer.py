"""Times and durations as the pages show them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingestd.web.renderer import clock

NOW = datetime(2026, 11, 21, 0, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-11-21 00:00:05", "00:00:05"),
        ("2026-11-21 23:59:59", "23:59:59"),
        ("2026-11-20 23:59:59", "yesterday 23:59"),
        ("2026-11-22 07:00:00", "tomorrow 07:00"),
        ("2026-11-19 23:59:59", "2026-11-19 23:59"),
        ("2026-11-23 00:00:00", "2026-11-23 00:00"),
    ],
)
def test_a_time_is_as_short_as_its_day_permits(at: str, shown: str) -> None:
    assert clock(datetime.fromisoformat(f"{at}+00:00").timestamp(), NOW) == shown
