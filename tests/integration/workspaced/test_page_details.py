"""Details of the pages: rows of the audit log, folded fields, titles of tabs, and what an empty page says to do first."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_edit_pages import send, sink_of, workspace_of
from tests.integration.workspaced.test_pages import sign_in, visiting
from tests.support.api_client import api_client
from workspaced.app import Application


@pytest.fixture
async def http(app: Application, make_key: MakeKey) -> AsyncIterator[httpx.AsyncClient]:
    async with api_client(app, make_key("anna")) as client:
        yield client


@pytest.fixture
async def browser(app: Application, http: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    async with visiting(app) as client:
        await sign_in(client, http.headers["x-api-key"])
        yield client


async def test_a_row_of_the_audit_log_names_its_resource_and_links_to_it(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"wheel.mass": "7"})
    changed = await http.patch(
        f"/v1/workspace/{workspace}/data-sink/{sink}/wheel.mass",
        json={"value": "8"},
        headers={"X-Request-Id": "0123456789abcdef"},
    )
    assert changed.status_code == 200, changed.text
    page = (await browser.get("/ui/audit", params={"action": "data_sink.*"})).text
    newest, created, *_ = re.findall(r"<tr>.*?</tr>", page.partition("<tbody>")[2], re.DOTALL)
    assert 'title="wheel.mass"' in newest
    assert 'title="0123456789abcdef"' in newest
    assert ">…abcdef<" in newest
    (target,) = re.findall(r'href="(/ui/workspaces/[^"]*/sinks/[^"]*)"', created)
    assert (await browser.get(target)).status_code == 200
    deleted = await http.delete(f"/v1/workspace/{workspace}/data-sink/{sink}")
    assert deleted.status_code == 200, deleted.text
    page = (await browser.get("/ui/audit", params={"action": "data_sink.deleted"})).text
    assert "/sinks/" not in page
    assert "Show all actions" in (await browser.get("/ui/audit", params={"action": "webhook.*"})).text


async def test_a_new_webhook_asks_for_three_fields_and_unfolds_the_others_when_one_needs_a_look(
    browser: httpx.AsyncClient,
) -> None:
    def fields_of(page: str) -> tuple[list[str], bool]:
        before, _, folded = page.partition('<details class="rare"')
        return re.findall(
            r'<(?:input|select|textarea) (?!type="hidden")[^>]*name="([^"]*)"', before
        ), folded.startswith(" open")

    page = "/ui/webhooks/new"
    shown, is_open = fields_of((await browser.get(page)).text.partition("<main")[2])
    assert (shown, is_open) == (["url", "label", "dataEvents"], False)
    for wrong in ({"headers": "no colon"}, {"url": "nowhere", "coalesce": "true"}):
        refused = await send(
            browser, page, **{"url": "https://example.com/in", "dataEvents": "*", "enabled": "true", **wrong}
        )
        assert refused.status_code >= 400
        assert fields_of(refused.text.partition("<main")[2]) == (shown, True)
    made = await send(browser, page, url="https://example.com/in", dataEvents="*", enabled="true")
    shown, is_open = fields_of((await browser.get(f"{made.headers['Location']}/edit")).text.partition("<main")[2])
    assert (shown, is_open) == (["url", "label", "dataEvents", "enabled"], False)


async def test_titles_of_tabs_name_the_page_and_what_it_is_in(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    base = f"/ui/workspaces/{workspace}"
    sink = f"{base}/sinks/{await sink_of(http, workspace, {'wheel.mass': '7'})}"
    expected = {
        base: "Rover",
        f"{base}/files": "Files · Rover",
        sink: "Masses · Rover",
        f"{sink}/entries/wheel.mass": "wheel.mass · Masses · Rover",
        f"{sink}/entries/wheel.mass/history": "wheel.mass · History · Masses · Rover",
        f"{sink}/entries/wheel.mass/edit": "Edit entry · wheel.mass · Masses · Rover",
        f"{sink}/import": "Import a table · Masses · Rover",
    }
    found = {page: re.findall("<title>(.*)</title>", (await browser.get(page)).text) for page in expected}
    assert found == {page: [f"{title} · workspaced"] for page, title in expected.items()}


async def test_an_empty_page_says_what_to_do_first(
    app: Application, browser: httpx.AsyncClient, http: httpx.AsyncClient, make_key: MakeKey
) -> None:
    async def empty(page: str, client: httpx.AsyncClient = browser) -> str:
        (found,) = re.findall(r'<(p|div) class="empty">(.*?)</\1>', (await client.get(page)).text, re.DOTALL)
        return str(found[1])

    assert 'href="/ui/workspaces/new"' in await empty("/ui/workspaces")
    assert 'href="/ui/webhooks/new"' in await empty("/ui/webhooks")
    workspace = await workspace_of(http)
    base = f"/ui/workspaces/{workspace}"
    assert f'href="{base}/new-sink"' in await empty(base)
    assert f'href="{base}/blocks/new"' in await empty(f"{base}/blocks")
    assert f"/v1/cloud-storage?workspaceId={workspace}" in await empty(f"{base}/files")
    async with visiting(app) as reader:
        await sign_in(reader, make_key("bob", role="reader"))
        for page in (base, f"{base}/blocks", f"{base}/files", "/ui/webhooks"):
            assert "href" not in await empty(page, reader)
