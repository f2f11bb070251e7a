from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workspaced.resources.data_sinks.entry_filters import AFTER_EVERY_KEY, EntryFilters, before_prefix

KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\U0010ffff"), min_size=1, max_size=5)


@given(KEYS, KEYS)
def test_the_range_of_a_prefix_has_the_keys_that_begin_with_it(prefix: str, key: str) -> None:
    filters = EntryFilters(prefix=prefix)
    for one in (key, prefix + key, prefix, prefix[:-1] + key):
        between = filters.low.encode() < one.encode() < filters.high.encode()
        assert between == one.startswith(prefix), one


def test_the_bounds_are_valid_texts_at_the_surrogates_and_at_the_first_character() -> None:
    assert before_prefix("a\ue000") == "a\ud7ff" + AFTER_EVERY_KEY
    assert before_prefix("a\x01") == "a"
