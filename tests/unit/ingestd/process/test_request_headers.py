"""Several lines of one header: joined or refused, the same way in every server of the product."""

from __future__ import annotations

import pytest

from ingestd.process.request_headers import SINGLE, RepeatedHeader, single_values


def test_lines_of_a_list_are_joined_in_their_order() -> None:
    lines = [(b"x-forwarded-for", b"192.0.2.1"), (b"accept", b"a"), (b"x-forwarded-for", b"198.51.100.1, 10.0.0.1")]
    assert single_values(lines) == {b"x-forwarded-for": b"192.0.2.1, 198.51.100.1, 10.0.0.1", b"accept": b"a"}


def test_cookies_are_joined_as_one_line_of_cookies() -> None:
    assert single_values([(b"cookie", b"a=1"), (b"cookie", b"b=2")]) == {b"cookie": b"a=1; b=2"}


@pytest.mark.parametrize("name", sorted(SINGLE))
def test_a_header_with_one_value_may_not_occur_twice(name: bytes) -> None:
    for second in (b"a", b"b", b""):
        with pytest.raises(RepeatedHeader, match=name.decode()):
            single_values([(name, b"a"), (b"accept", b"x"), (name, second)])
