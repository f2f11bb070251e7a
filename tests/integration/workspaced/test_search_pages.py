"""The search of a sink and of a workspace on the pages: by key and by value, in bounded pages that say where they stopped."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_pages import sign_in, visiting
from tests.support.api_client import api_client
from workspaced.app import running
from workspaced.settings.model import Limits, WorkspacedSettings
from workspaced.ui import entries as entries_page

KEY = re.compile(r'<th scope="row"[^>]*>(?:<input[^>]*>)?<a href="[^"]+/entries/([^"/]+)">')
NEXT = re.compile(r'rel="next" href="([^"]*)"')


@asynccontextmanager
async def site(
    settings: WorkspacedSettings, make_key: MakeKey, limits: Limits
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Yield a signed-in browser, and a client of the API."""
    async with running(dataclasses.replace(settings, limits=limits)) as app, visiting(app) as browser:
        await sign_in(browser, make_key("anna"))
        async with api_client(app, make_key("bob")) as http:
            yield browser, http


async def sink_of(http: httpx.AsyncClient, workspace: str, label: str, entries: dict[str, str]) -> str:
    items = [{"key": key, "value": value, "dataType": "text"} for key, value in entries.items()]
    made = await http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": label, "entries": items})
    return f"/ui/workspaces/{workspace}/sinks/{made.json()['visibleId']}"


async def pages_of(browser: httpx.AsyncClient, path: str) -> list[str]:
    """Return the page, and each page after it by the link to the next one."""
    found = []
    while path:
        shown = await browser.get(path)
        assert shown.status_code == 200, shown.text
        found.append(shown.text)
        following = NEXT.search(shown.text)
        path = html.unescape(following[1]) if following else ""
    return found


async def test_a_sink_is_searched_by_value_and_says_where_it_stopped(
    settings: WorkspacedSettings, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = dataclasses.replace(settings.limits, walked_rows=300)
    async with site(settings, make_key, limits) as (browser, http):
        workspace = (await http.post("/v1/workspace", json={"label": "Rover"})).json()["id"]
        entries = {f"k{number:03d}": f"value {number}" for number in range(700)}
        sink = await sink_of(http, workspace, "Masses", entries)
        monkeypatch.setattr(entries_page, "SEARCH_SECONDS", 60.0)
        for path in (
            f"{sink}?search=value+699&in=value",
            f"/ui/workspaces/{workspace}/search?search=value+699&in=value",
        ):
            (page,) = await pages_of(browser, path)
            assert KEY.findall(page) == ["k699"], "a page examines parts until it finds something"
        monkeypatch.setattr(entries_page, "SEARCH_SECONDS", 0.0)
        pages = await pages_of(browser, f"{sink}?search=value+699&in=value")
        assert [KEY.findall(page) for page in pages] == [[], [], ["k699"]], "but not for long"
        assert ["data-goes-on" in page for page in pages] == [True, True, False], "the script of a page goes on"
        assert "up to the key <bdi" in pages[0]
        assert "k299" in pages[0]
        assert KEY.findall((await browser.get(f"{sink}?search=k01&in=value")).text) == []
        assert KEY.findall((await browser.get(f"{sink}?search=K010&in=all")).text) == ["k010"]
        by_key = await browser.get(f"{sink}?search=k699")
        assert KEY.findall(by_key.text) == ["k699"], "an exact key is found at once"
        assert "The entry with this key" in by_key.text
        for text, found in (("k69", []), ("k010", ["k010"]), ("list", []), ("mass", []), ("699", [])):
            assert KEY.findall((await browser.get(f"{sink}?search={text}")).text) == found
        newest = await browser.get(f"{sink}?search=value+1&in=value&sort=newest")
        assert "too many entries for this order, so they are sorted by key" in newest.text
        assert "sortedBy" not in newest.text, "a user does not know the words of the API"
        csv = await browser.get(f"{sink}/entries.csv?search=value+699&in=value")
        assert csv.text.splitlines()[1].startswith('"k699","value 699",')


async def test_a_search_that_no_key_has_finds_values(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    async with site(settings, make_key, settings.limits) as (browser, http):
        workspace = (await http.post("/v1/workspace", json={"label": "Rover"})).json()["id"]
        sink = await sink_of(
            http, workspace, "Masses", {"steel": "18.5", "mast": "steel", "frame": "18.5", "18.5": "x"}
        )
        for query, keys in (
            ("search=steel", ["steel"]),
            ("search=18.5", ["18.5"]),
            ("search=18.5&in=value", ["frame", "steel"]),
            ("search=8.5&prefix=s", ["steel"]),
            ("search=8.5&prefix=f&sort=newest", ["frame"]),
            ("search=nothing", []),
        ):
            assert KEY.findall((await browser.get(f"{sink}?{query}")).text) == keys, query
        sorted_by_time = (await browser.get(f"{sink}?search=18.5&in=value&sort=newest")).text
        assert KEY.findall(sorted_by_time) == ["frame", "steel"]
        assert "The results of a search of values are sorted by key." in sorted_by_time


async def test_a_workspace_is_searched_in_all_its_sinks_and_every_entry_is_found_once(
    settings: WorkspacedSettings, make_key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries_page, "SEARCH_SECONDS", 0.0)
    limits = dataclasses.replace(settings.limits, walked_rows=40)
    async with site(settings, make_key, limits) as (browser, http):
        workspace = (await http.post("/v1/workspace", json={"label": "Rover"})).json()["id"]
        page = f"/ui/workspaces/{workspace}"
        assert "Search data sinks" not in (await browser.get(page)).text, "there is nothing to search"
        for number in range(60):
            entries = {f"s{number:02d}.{entry:03d}": "steel" if entry % 50 == 0 else "x" for entry in range(number * 2)}
            await sink_of(http, workspace, f"Sink {number}", entries)
        assert "Search data sinks" in (await browser.get(page)).text
        pages = await pages_of(browser, f"{page}/search?search=STEEL&in=value")
        wanted = [f"s{number:02d}.{entry:03d}" for number in range(1, 60) for entry in range(0, number * 2, 50)]
        assert [key for shown in pages for key in KEY.findall(shown)] == wanted
        assert len(pages) > 2
        assert "Examined up to" in pages[0]
        assert "Examined up to" not in pages[-1]
        by_label = (await browser.get(f"{page}/search?search=sink+7")).text
        assert ">Sink 7</bdi>" in by_label
        nothing = await pages_of(browser, f"{page}/search?search=nothing&in=key")
        assert "None so far." in nothing[0]
        assert ["data-goes-on" in page for page in nothing] == [True] * (len(nothing) - 1) + [False]
        assert "No more entry has" in nothing[-1]


async def test_a_search_shows_only_what_its_key_may_read(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    async with site(settings, make_key, settings.limits) as (_, http), running(settings) as app:
        workspaces = [(await http.post("/v1/workspace", json={"label": label})).json()["id"] for label in ("A", "B")]
        for workspace in workspaces:
            await sink_of(http, workspace, "Masses", {"a": "steel"})
        async with visiting(app) as browser:
            await sign_in(browser, make_key("carl", role="reader", workspace_id=workspaces[0]))
            found = [
                await browser.get(f"/ui/workspaces/{one}/search", params={"search": "steel"}) for one in workspaces
            ]
            assert [one.status_code for one in found] == [200, 403]
            assert KEY.findall(found[0].text) == ["a"]
            assert KEY.findall(found[1].text) == []
