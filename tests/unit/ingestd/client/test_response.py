from __future__ import annotations

import pytest

from ingestd.client.response import without_item_paths


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The service says: Bad request (/17/key: too long)", "The service says: Bad request (key: too long)"),
        ("refused: /0/value: no number; /0/dataType: unknown", "refused: value: no number; dataType: unknown"),
        ("The service says: /3/key is too long.", "The service says: key is too long."),
        ("The service says: Too long (/3/key; /4/value)", "The service says: Too long (key; value)"),
        ("no entry 'a/17/key: b'", "no entry 'a/17/key: b'"),
        ("It is 3/4/mm long", "It is 3/4/mm long"),
    ],
)
def test_a_path_in_a_request_becomes_the_name_of_its_field(sentence: str, expected: str) -> None:
    assert without_item_paths(sentence) == expected
