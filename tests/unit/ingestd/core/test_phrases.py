"""Words of sentences."""

from __future__ import annotations

import pytest

from ingestd.core.phrases import counted


@pytest.mark.parametrize(
    ("number", "noun", "phrase"),
    [
        (0, "entry", "0 entries"),
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (1, "record", "1 record"),
        (3, "more line", "3 more lines"),
        (2, "day", "2 days"),
    ],
)
def test_a_number_of_things_is_singular_only_for_one(number: int, noun: str, phrase: str) -> None:
    assert counted(number, noun) == phrase
