from __future__ import annotations

import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.http.paths import Routes, segments


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"/a/b", ("a", "b")),
        (b"/a%2Fb", ("a/b",)),
        (b"/a%252Fb", ("a%2Fb",)),
        (b"/l%69st", ("list",)),
        (b"/a+b", ("a+b",)),
        (b"/kg%C2%B2", ("kg²",)),
        (b"/o%CC%88", ("ö",)),
        (b"/%FF", (None,)),
        (b"/a%00", (None,)),
        (b"/100%", ("100%",)),
        (b"/a/", ("a", "")),
        (b"/", ("",)),
    ],
)
def test_a_path_is_split_before_it_is_decoded(raw: bytes, expected: tuple[str | None, ...]) -> None:
    # contract G16
    assert segments(raw) == expected


@given(st.text(min_size=1).filter(lambda text: "\0" not in text and not any(0xD800 <= ord(c) <= 0xDFFF for c in text)))
def test_every_text_is_unchanged_by_a_round_trip_through_a_path(text: str) -> None:
    # contract G16
    assert segments(f"/x/{quote(text, safe='')}".encode()) == ("x", unicodedata.normalize("NFC", text))


def _routes() -> Routes[str]:
    routes: Routes[str] = Routes()
    for method, path in (
        ("GET", "/s/{sink}"),
        ("GET", "/s/list"),
        ("PATCH", "/s/{sink}"),
        ("POST", "/s/{sink}/{key}"),
        ("POST", "/s/{sink}/mass"),
    ):
        routes.add(method, path, f"{method} {path}")
    return routes


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", ("s", "list"), "GET /s/list"),
        ("HEAD", ("s", "list"), "GET /s/list"),
        ("PATCH", ("s", "list"), "PATCH /s/{sink}"),
        ("POST", ("s", "x", "mass"), "POST /s/{sink}/mass"),
        ("POST", ("s", "x", "y"), "POST /s/{sink}/{key}"),
        ("POST", ("s", "x", None), "POST /s/{sink}/{key}"),
    ],
)
def test_a_literal_segment_takes_precedence_over_a_placeholder(
    method: str, path: tuple[str | None, ...], expected: str
) -> None:
    match = _routes().find(method, path)
    assert match
    assert match.operation == expected


def test_a_placeholder_is_never_empty_and_all_other_methods_are_listed() -> None:
    assert _routes().find("GET", ("s", "")) is None
    match = _routes().find("DELETE", ("s", "list"))
    assert match
    assert match.allowed == ("GET", "HEAD", "OPTIONS", "PATCH")


_PART = st.sampled_from(["{a}", "{b}", "x", "y"])
_PATTERN = st.lists(_PART, min_size=1, max_size=3).filter(
    lambda parts: len({*parts} & {"{a}", "{b}"}) == sum(part[0] == "{" for part in parts)
)
_METHOD = st.sampled_from(["GET", "POST"])


@given(
    st.sets(st.tuples(_METHOD, _PATTERN.map(tuple)), max_size=12),
    _METHOD,
    st.lists(st.sampled_from(["x", "y", "z", "", None]), min_size=1, max_size=3),
)
def test_of_the_matching_patterns_the_one_with_the_earlier_literal_is_found(
    table: set[tuple[str, tuple[str, ...]]], method: str, path: list[str | None]
) -> None:
    """The result is that of a search through all patterns."""
    routes: Routes[str] = Routes()
    by_words = {
        (verb, tuple("{}" if part[0] == "{" else part for part in parts)): parts for verb, parts in sorted(table)
    }
    for (verb, _), parts in by_words.items():
        routes.add(verb, "/" + "/".join(parts), f"{verb} {parts}")
    fitting = sorted(
        ([part[0] == "{" for part in parts], verb, parts)
        for (verb, _), parts in by_words.items()
        if len(parts) == len(path)
        and all(value != "" if part[0] == "{" else value == part for part, value in zip(parts, path, strict=True))
    )
    match = routes.find(method, tuple(path))
    if not fitting:
        assert match is None
        return
    assert match
    first = next((parts for _, verb, parts in fitting if verb == method), None)
    assert match.operation == (first and f"{method} {first}")
    if first:
        assert match.names == {part[1:-1]: value for part, value in zip(first, path, strict=True) if part[0] == "{"}
    else:
        assert set(match.allowed) - {"HEAD", "OPTIONS"} == {verb for _, verb, _ in fitting}
