"""Words of sentences."""

from __future__ import annotations

import pytest

from ingestd.core.phrases import as_sentence, counted, first_names


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


def test_the_first_names_are_followed_by_the_number_of_the_others() -> None:
    assert first_names([]) == ""
    assert first_names(range(3), 3) == "0, 1, 2"
    assert first_names(iter("abcd"), 2) == "a, b and 2 more"


@pytest.mark.parametrize(("text", "sentence"), [("No", "No."), ("No.", "No."), ("Why?", "Why?"), ("'..'", "'..'.")])
def test_a_sentence_ends_once(text: str, sentence: str) -> None:
    assert as_sentence(text) == sentence
