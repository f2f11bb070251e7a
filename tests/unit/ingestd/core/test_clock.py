from __future__ import annotations

from ingestd.core.clock import moment


def test_a_time_is_written_in_utc() -> None:
    assert moment(1_763_726_400.9) == "2025-11-21 12:00:00 UTC"
