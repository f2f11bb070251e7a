from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from ingestd.core.clock import moment, parse_time, seconds_of


def test_a_time_is_written_in_utc() -> None:
    assert moment(1_763_726_400.9) == "2025-11-21 12:00:00 UTC"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-11-07", "2026-11-07T00:00:00"),
        ("20261107T0710Z", "2026-11-07T07:10:00+00:00"),
        ("2026-W45-6 23:24", "2026-11-07T23:24:00"),
    ],
)
def test_a_time_of_iso_8601_is_read(text: str, shown: str) -> None:
    assert parse_time(text).isoformat() == shown


@pytest.mark.parametrize(
    "text", ["2026-11-07T24:00", "20261107 24", "2026-W45-6T24:00:00Z", "2026W45\n24", "2026-02-30", "2026"]
)
def test_hour_24_is_no_time_in_any_version_of_python(text: str) -> None:
    with pytest.raises(ValueError, match=r"hour 24|isoformat|day|month"):
        parse_time(text)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-14:00", "9999-01-01T00:00:00Z", "1970-12-31T23:59:59Z", "soon"])
def test_a_time_that_no_zone_can_show_is_no_time(text: str) -> None:
    assert seconds_of(text) is None


@pytest.mark.parametrize("text", ["9998-12-31T23:59:59-14:00", "1971-01-01T00:00:00+14:00"])
@pytest.mark.parametrize("hours", [-12, 14])
def test_a_time_of_a_response_can_be_shown_in_every_zone(text: str, hours: int) -> None:
    seconds = seconds_of(text)
    assert seconds is not None
    assert moment(seconds, timezone(timedelta(hours=hours)))
