"""Every page at the width of a phone, in both colour schemes, by keyboard, and without external resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import Service, api
from tests.support.accessibility import axe_findings
from tests.support.chromium import Browser
from tests.support.webhook_receiver import WebhookReceiver

pytestmark = pytest.mark.timeout(900)
"""Several tests open each page, which takes minutes on a machine that is busy with other tests."""


@pytest.fixture(scope="module")
def pages(service: Service) -> Iterator[list[str]]:
    """Return an address of each kind of page, with content."""
    workspace = service.workspace("A workspace with a label that is long, as labels tend to be, in " + "o" * 80)
    entries: dict[str, str | None] = {f"part.{number:03d}.mass": "0.10" for number in range(120)}
    empty = service.workspace("Empty")
    sink = service.sink(workspace, {**entries, "k" * 255: "v" * 2_000, "null": None}, label="s" * 200)
    address = api(sink, "data-sink-history")
    assert service.http.patch(address, json={"changes": 10, "days": 10}).status_code == 200
    for mass in ("0.20 kg", "0.30 kg"):
        service.write(sink, "part.001.mass", mass)
    block = service.block(workspace, "b" * 120)
    service.block(workspace, "Wheel", parent=block)
    file = service.http.post(
        "/v1/cloud-storage",
        params={"workspaceId": workspace, "fileName": "n" * 120 + ".txt"},
        content=b"text",
        headers={"Content-Type": "text/plain"},
    )
    assert file.status_code == 201, file.text
    with WebhookReceiver(500) as receiver:
        made = service.http.post("/v1/webhooks", json={"url": f"{receiver.url}/{'u' * 120}", "dataEvents": []})
        webhook = made.headers["Location"].rpartition("/")[2]
        delivery = service.http.post(f"/v1/webhooks/{webhook}/test").json()["id"]
        receiver.next()
        yield [
            "/ui/sign-in",
            "/ui/workspaces",
            f"/ui/workspaces/{workspace}",
            sink,
            f"{sink}/entries/{'k' * 255}",
            f"/ui/workspaces/{workspace}/blocks",
            f"/ui/workspaces/{workspace}/blocks/{block}",
            f"/ui/workspaces/{workspace}/files",
            f"/ui/workspaces/{workspace}/files/{file.json()['id']}",
            "/ui/webhooks",
            "/ui/webhooks/event-types",
            f"/ui/webhooks/{webhook}",
            f"/ui/webhooks/{webhook}/deliveries/{delivery}",
            "/ui/workspaces/new",
            f"/ui/workspaces/{workspace}/edit",
            f"/ui/workspaces/{workspace}/delete",
            f"{sink}/edit",
            f"{sink}/import",
            f"{sink}/entries/{'k' * 255}/edit",
            f"/ui/workspaces/{workspace}/blocks/{block}/edit",
            f"/ui/workspaces/{workspace}/files/{file.json()['id']}/edit",
            f"/ui/workspaces/{workspace}/files/{file.json()['id']}/metadata",
            f"/ui/workspaces/{workspace}/search?search=0.1&in=value",
            f"/ui/workspaces/{workspace}/search?search=none",
            f"{sink}?search=none&in=all",
            f"{sink}/history",
            f"{sink}/history?from=2020-01-01T00:00:00",
            f"{sink}/entries/part.001.mass/history",
            f"{sink}/plot",
            f"{sink}/plot?key=part.001.mass&key=part.002.mass&key={'k' * 255}",
            f"{sink}/entries/part.001.mass/delete",
            f"{sink}/new-entry",
            f"{sink}/delete",
            f"/ui/workspaces/{workspace}/new-sink",
            f"/ui/workspaces/{workspace}/blocks/new",
            f"/ui/workspaces/{empty}",
            f"/ui/workspaces/{empty}/files",
            f"/ui/workspaces/{empty}/blocks",
            "/ui/audit?action=data_sink.entry.batch",
            "/ui/webhooks?search=none",
            "/ui/webhooks/new",
            f"/ui/webhooks/{webhook}/edit",
            f"/ui/webhooks/{webhook}/delete",
            "/ui/keys",
            "/ui/audit",
            "/ui/nothing",
        ]


UNFOLD = "document.querySelectorAll('details').forEach((folded) => { folded.open = true; })"


WIDTHS = (360, 768, 800, 1024, 1100, 1280)
WIDER_THAN_WINDOW = (
    "const root = document.documentElement;"
    "return [root.scrollWidth - root.clientWidth, Array.from(document.querySelectorAll('main *'))"
    ".filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('pre, thead'))"
    ".map((e) => e.outerHTML.slice(0, 80))]"
)
APART_FROM_THEIR_FIELDS = (
    "return Array.from(document.querySelectorAll('.bar label')).filter((label) => {"
    "const a = label.getBoundingClientRect(), b = label.control.getBoundingClientRect();"
    "const line = 1.5 * parseFloat(getComputedStyle(label).lineHeight);"
    "const beside = a.top < b.bottom && b.top < a.bottom && b.left >= a.right - 1;"
    "const above = Math.abs(a.left - b.left) < 2 && b.top >= a.bottom - 1 && b.top < a.bottom + 16;"
    "return a.height > line || !(beside || above);}).map((label) => label.innerText)"
)


def test_no_page_is_wider_than_its_window_and_labels_are_with_their_fields(
    signed_in: Browser, pages: list[str]
) -> None:
    for page in pages:
        signed_in.go(page)
        signed_in.run(UNFOLD)
        for width in WIDTHS:
            signed_in.shape(width, 740)
            assert signed_in.run(WIDER_THAN_WINDOW) == [0, []], (page, width)
            assert signed_in.run(APART_FROM_THEIR_FIELDS) == [], (page, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(signed_in: Browser, pages: list[str], scheme: str) -> None:
    signed_in.colours(scheme)
    found = []
    for page in pages:
        signed_in.go(page)
        signed_in.run(UNFOLD)
        found += [
            f"{page}: {one}" for one in axe_findings(signed_in, only="color-contrast" if scheme == "dark" else "")
        ]
        assert len(signed_in.texts("h1")) == 1, page
    assert found == [], "\n".join(found)
    ground = signed_in.run("return getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(246, 247, 249)", "dark": "rgb(17, 21, 27)"}[scheme]


def test_no_page_loads_external_or_forbidden_resources(signed_in: Browser, service: Service, pages: list[str]) -> None:
    signed_in.requested()
    for page in pages[:-1]:
        signed_in.go(page)
    asked = signed_in.requested()
    assert len(asked) >= len(pages) - 1
    # Chromium has the icon of a date field as a data URL of its own.
    assert [address for address in asked if not address.startswith((f"{service.url}/ui", "data:image/svg+xml;"))] == []
    assert [address for address in asked if service.key in address] == []
    assert signed_in.complaints() == []


def test_a_bidirectional_control_character_is_shown_and_has_no_effect(signed_in: Browser, service: Service) -> None:
    sink = service.sink(service.workspace("Direction"), {"evil": "abc\u202edef"}, label="Mas\u202eses")
    signed_in.go(sink)
    value = signed_in.find(".value")
    assert value.get_attribute("textContent") == "abc\u202edef"
    places = signed_in.run(
        "const value = document.querySelector('.value'); const range = document.createRange();"
        "const last = value.lastChild; return Array.from(last.textContent, (_, index) => {"
        "range.setStart(last, index); range.setEnd(last, index + 1); return range.getBoundingClientRect().left; });"
    )
    assert len(places) == 3
    assert places == sorted(places), "the characters after it are displayed from left to right"
    assert signed_in.find("td .direction").get_attribute("data-code") == "U+202E"
    assert signed_in.find("h1 .direction").get_attribute("data-code") == "U+202E", "labels are shown as values are"


def test_all_pages_can_be_used_by_keyboard(browser: Browser, service: Service) -> None:
    workspace = service.workspace("Keyboard")
    service.sink(workspace, {"by.hand": "1"})
    browser.go("/ui/sign-in")
    browser.press(service.key, Keys.ENTER)
    browser.until(lambda: browser.heading == "Workspaces")
    browser.press(Keys.TAB)
    assert browser.focused.text == "Skip to the content"
    browser.press(Keys.ENTER)
    assert browser.focused.tag_name == "main"
    browser.press(Keys.TAB)
    browser.press("keyb", Keys.ENTER)
    browser.until(lambda: browser.texts(".tiles a") == ["Keyboard"])
    for words, heading in (("Keyboard", "Keyboard"), ("Masses", "Masses SNK-1"), ("by.hand", "by.hand")):
        browser.tab_to(words)
        browser.press(Keys.ENTER)
        browser.until(lambda heading=heading: browser.heading == heading)  # type: ignore[misc]
    browser.tab_to("Sign out")
    browser.press(Keys.ENTER)
    browser.until(lambda: browser.heading == "Sign in")


def test_the_tree_opens_and_closes_by_keyboard(signed_in: Browser, service: Service) -> None:
    workspace = service.workspace("Tree")
    wheel = service.block(workspace, "Wheel", parent=service.block(workspace, "Chassis"))
    service.block(workspace, "Tyre", parent=wheel)
    signed_in.go(f"/ui/workspaces/{workspace}/blocks")
    assert "Tyre" not in signed_in.text
    signed_in.tab_to("1 below\nWheel")
    assert signed_in.focused.tag_name == "summary"
    signed_in.press(Keys.ENTER)
    signed_in.until(lambda: "Tyre" in signed_in.text)
    signed_in.press(Keys.SPACE)
    signed_in.until(lambda: "Tyre" not in signed_in.text)
    signed_in.go(f"/ui/workspaces/{workspace}/blocks")
    signed_in.tab_to("Wheel")
    assert signed_in.focused.tag_name == "a"
    signed_in.press(Keys.ENTER)
    signed_in.until(lambda: signed_in.heading == "Wheel")
    assert signed_in.texts(".plain a") == ["Tyre"]
