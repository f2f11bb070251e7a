"""The rules of the pages, without a service."""

from __future__ import annotations

import pytest

from workspaced.http.headers import RequestHeaders
from workspaced.ui.addresses import address, below
from workspaced.ui.blocks import tree_of
from workspaced.ui.files import picture_of
from workspaced.ui.pager import PagePosition, Pager
from workspaced.ui.protection import is_same_origin, keep_cookie, safe_return, token_of


def test_every_segment_and_value_of_an_address_is_encoded() -> None:
    assert address("a/b", "c?d", search="x&y", skip=None, sort="") == "/ui/a%2Fb/c%3Fd?search=x%26y"
    assert address() == "/ui"
    assert below("/ui/x", "é/%") == "/ui/x/%C3%A9%2F%25"


def test_a_pager_links_to_the_first_page_and_to_the_next_page() -> None:
    def links(skip: int, total: int) -> Pager:
        return PagePosition(take=10, skip=skip).pager(total, "x", search="s")

    assert links(0, 25) == Pager(first=1, last=10, total=25, previous="", next="/ui/x?search=s&skip=10")
    assert links(10, 25).previous == "/ui/x?search=s"
    assert links(20, 25) == Pager(first=21, last=25, total=25, previous="/ui/x?search=s&skip=10", next="")
    assert links(0, 0) == Pager(first=0, last=0, total=0, previous="", next="")
    assert links(5, 8).previous == "/ui/x?search=s"


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({}, True),
        ({"Origin": "https://host:8", "Host": "host:8"}, True),
        ({"Origin": "https://host:8", "Host": "host"}, False),
        ({"Origin": "null", "Host": "host"}, False),
        ({"Origin": "http://[", "Host": "host"}, False),
        ({"Origin": "https://evil", "Host": "host", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": ""}, False),
    ],
)
def test_a_form_is_accepted_if_the_browser_reports_the_same_origin(headers: dict[str, str], ours: bool) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    assert is_same_origin(RequestHeaders({"headers": raw})) is ours


def test_the_session_cookie_is_found_by_its_exact_name_among_others() -> None:
    assert token_of("a=b; workspaced_session=tok-en_; c=d") == "tok-en_"
    assert token_of("xworkspaced_session=1; workspaced_session2=2") == ""
    assert token_of("") == ""
    assert keep_cookie("t", seconds=60, scheme="https")[1].endswith("; Secure")
    assert "Secure" not in keep_cookie("t", seconds=60, scheme="http")[1]


def test_only_pages_of_the_service_are_redirect_targets() -> None:
    assert safe_return("/ui/webhooks?skip=50") == "/ui/webhooks?skip=50"
    for elsewhere in ("/ui/sign-out", "//ui/x", "/v1/x", "https://ui/", "/ui/a\nb", "/ui/é", ""):
        assert safe_return(elsewhere) == "/ui/workspaces"


def test_a_tree_keeps_the_order_and_reports_blocks_outside_it() -> None:
    blocks = [
        {"id": "root", "parentBlock": "", "children": ["b", "a"]},
        {"id": "b", "parentBlock": "root", "children": ["c", "d"]},
        {"id": "a", "parentBlock": "root", "children": []},
        {"id": "c", "parentBlock": "b", "children": ["e"]},
    ]
    (root,) = tree_of(blocks)
    assert [child.block["id"] for child in root.children] == ["b", "a"]
    assert [node.hidden for node in (root, *root.children, root.children[0].children[0])] == [0, 1, 0, 1]
    assert tree_of([]) == []


def test_the_smallest_picture_of_a_conversion_is_shown() -> None:
    outputs = [
        {"name": "page.png", "contentType": "image/png", "size": 900},
        {"name": "thumb.png", "contentType": "image/png", "size": 90},
        {"name": "text.txt", "contentType": "text/plain", "size": 1},
        {"name": "drawing.svg", "contentType": "image/svg+xml", "size": 2},
    ]
    assert picture_of({"conversion": {"outputs": outputs}}) == "thumb.png"
    assert picture_of({"conversion": {"outputs": outputs[2:]}}) == ""
