"""A cursor of changes is moved back to an earlier value, and to nothing else."""

from __future__ import annotations

import pytest

from connectors.database.changes.cursor import rewind_cursor
from ingestd.sdk import SourceBroken

TIMES = {"changes": 1, "reading": "a", "state": {"bound": 1_767_225_600_000_000, "candidate": None}}
NUMBERS = {"changes": 1, "reading": "a", "state": {"bound": "100.5", "candidate": {"at": 1, "highest": "120"}}}


@pytest.mark.parametrize("to", ["2025-12-31T23:00:00Z", "2025-12-31T23:00:00", "2026-01-01T00:00:00+01:00"])
def test_a_time_becomes_the_bound_in_microseconds(to: str) -> None:
    moved = rewind_cursor(TIMES, to)
    assert moved["state"] == {"bound": 1_767_222_000_000_000, "candidate": None}
    assert moved["reading"] != "a"


def test_a_number_stays_exact() -> None:
    assert rewind_cursor(NUMBERS, "1e1")["state"] == {"bound": "10", "candidate": {"at": 1, "highest": "120"}}


@pytest.mark.parametrize(
    ("cursor", "to", "sentence"),
    [
        (TIMES, "2026-01-01T00:00:00Z", "not later than"),
        (TIMES, "yesterday", "no time"),
        (NUMBERS, "100.5", "not more than"),
        (NUMBERS, "NaN", "not more than"),
        (NUMBERS, "ten", "no number"),
        ({"changes": 1, "state": {"xmin": 7}}, "5", "no time and no number"),
        ({}, "5", "no time and no number"),
    ],
)
def test_anything_else_is_refused(cursor: dict[str, object], to: str, sentence: str) -> None:
    with pytest.raises(SourceBroken, match=sentence):
        rewind_cursor(cursor, to)
