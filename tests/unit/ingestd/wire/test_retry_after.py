from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.wire.retry_after import retry_after_seconds

NOON = 1_763_726_400.0  # Fri, 21 Nov 2025 12:00:00 GMT


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        (" 7 ", 7),
        ("1.5", 1.5),
        ("99999", 300),
        ("99999999999999999999", 300),
        ("Fri, 21 Nov 2025 12:00:09 GMT", 9),
        ("Friday, 21-Nov-25 12:00:09 GMT", 9),
        ("Fri Nov 21 12:00:09 2025", 9),
        ("Fri, 21 Nov 2025 12:00:09 -0000", 9),
        ("Fri, 21 Nov 2025 11:00:00 GMT", 0),
        ("Fri, 21 Nov 2036 12:00:00 GMT", 300),
    ],
)
def test_both_forms_of_retry_after_are_parsed_and_limited(text: str, seconds: float) -> None:
    assert retry_after_seconds(text, now=NOON, cap_seconds=300) == seconds


@pytest.mark.parametrize(
    "text",
    [None, "", "soon", "-1", "1e9", "nan", "٣", "Fri, 99 Nov 2025 12:00:09 GMT", "0x10", "1 Jan 999999999999 00:00:00"],
)
def test_an_invalid_retry_after_is_ignored(text: str | None) -> None:
    assert retry_after_seconds(text, now=NOON, cap_seconds=300) is None


@given(text=st.text(max_size=40))
def test_any_text_of_a_retry_after_is_tolerated(text: str) -> None:
    seconds = retry_after_seconds(text, now=NOON, cap_seconds=300)
    assert seconds is None or 0 <= seconds <= 300
