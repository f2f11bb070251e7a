from __future__ import annotations

import pytest

from ingestd.core.json_depth import LEVELS, require_depth


@pytest.mark.parametrize(
    "text",
    [
        b"[" * LEVELS + b"]" * LEVELS,
        b"[" + b"{}," * LEVELS + b"[]]",
        b'["' + b"[" * 2 * LEVELS + b'"]',
        b'{"\\"' + b"{" * 2 * LEVELS + b'": 1}',
        b'["\\\\", "' + b"[" * 2 * LEVELS + b'"]',
    ],
    ids=["at the limit", "side by side", "in a text", "after a quote in a text", "after a backslash in a text"],
)
def test_a_text_that_is_not_nested_too_deeply_is_accepted(text: bytes) -> None:
    require_depth(text)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * (LEVELS + 1) + b"]" * (LEVELS + 1),
        b'{"a": [' * LEVELS + b"]}" * LEVELS,
        b'["' + b"]" * LEVELS + b'", ' + b"[" * LEVELS + b"]" * LEVELS + b"]",
        b"[" * 100_000,
    ],
    ids=["one level too deep", "objects and lists", "closed in a text only", "without an end"],
)
def test_a_text_that_is_nested_too_deeply_is_refused(text: bytes) -> None:
    with pytest.raises(RecursionError):
        require_depth(text)
