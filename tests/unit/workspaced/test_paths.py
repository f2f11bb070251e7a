from __future__ import annotations

import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaced.web.paths import Routes, segments


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
    assert segments(raw) == expected


@given(st.text(min_size=1).filter(lambda text: "\0" not in text and not any(0xD800 <= ord(c) <= 0xDFFF for c in text)))
def test_every_text_survives_the_way_through_a_path(text: str) -> None:
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
def test_a_fixed_word_goes_before_a_name(method: str, path: tuple[str | None, ...], expected: str) -> None:
    match = _routes().find(method, path)
    assert match
    assert match.operation == expected


def test_a_name_is_never_empty_and_other_methods_are_all_told() -> None:
    assert _routes().find("GET", ("s", "")) is None
    match = _routes().find("DELETE", ("s", "list"))
    assert match
    assert match.allowed == ("GET", "HEAD", "OPTIONS", "PATCH")
