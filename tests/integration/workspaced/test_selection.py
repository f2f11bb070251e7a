"""Actions on several rows without a browser: what they write, what they leave, and that one undo takes them back."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_edit_pages import HIDDEN, send, sink_of, workspace_of
from tests.integration.workspaced.test_history_pages import plain
from tests.integration.workspaced.test_pages import OWN, sign_in, visiting
from tests.support.api_client import api_client
from workspaced.app import Application

BOX = re.compile(r'class="row-box" name="row" form="selection" value="([^"]+)"')
ENTRIES: dict[str, str | None] = {"a": "1", "b": "x\r\ny", "c": None, "d": "", "e": '=1+"1"\t2'}


class Grid:
    """A sink's page for a browser, and its address in the API."""

    def __init__(self, browser: httpx.AsyncClient, http: httpx.AsyncClient, page: str, api: str) -> None:
        self.browser, self.http, self.page, self.api = browser, http, page, api

    async def select(self, *keys: str) -> dict[str, str | list[str]]:
        """Return the fields of the form with the rows of these keys, as the page shows them now."""
        shown = await self.browser.get(self.page)
        rows = [html.unescape(value) for value in BOX.findall(shown.text)]
        fields = dict(HIDDEN.findall(shown.text.partition('<form id="selection"')[2]))
        return {**fields, "row": [row for row in rows if row.partition(" ")[2] in keys]}

    async def act(self, fields: dict[str, str | list[str]], action: str, **more: str) -> httpx.Response:
        sent = {**fields, "action": action, **more}
        return await self.browser.post(f"{self.page}/selection", data=sent, headers=OWN)

    async def undo(self, done: httpx.Response) -> httpx.Response:
        fields = dict(HIDDEN.findall(done.text.partition('<form class="undo')[2].partition("</form>")[0]))
        sent = {name: html.unescape(value) for name, value in fields.items()}
        return await self.browser.post(f"{self.page}/selection", data=sent, headers=OWN)

    async def stored(self) -> dict[str, tuple[str | None, str]]:
        entries = (await self.http.get(self.api)).json()["entries"]
        return {one["key"]: (one["value"], one["dataType"]) for one in entries}

    async def actions(self) -> list[str]:
        """Return the actions in the audit log on entries by the user of the browser, the last one first."""
        log = (await self.http.get("/v1/audit-log", params={"take": "50"})).json()
        return [one["action"] for one in log if one["principal"] == "anna" and one["action"].startswith("data_sink")]


@pytest.fixture
async def grid(app: Application, make_key: MakeKey) -> AsyncIterator[Grid]:
    async with visiting(app) as browser, api_client(app, make_key("bob")) as http:
        await sign_in(browser, make_key("anna"))
        workspace = await workspace_of(http)
        sink = await sink_of(http, workspace, ENTRIES)
        page, api = f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"
        yield Grid(browser, http, page, api)


async def test_selected_rows_are_deleted_at_once_and_restored_by_one_undo(grid: Grid) -> None:
    before = await grid.stored()
    fields = await grid.select("a", "b", "d", "e")
    await grid.http.post(f"{grid.api}/mass", json={"key": "a", "value": "2"})
    done = await grid.act(fields, "delete")
    assert done.status_code == 200, done.text
    assert "3 deleted, 1 not, because a later change would be lost." in plain(done)
    assert re.search(r"a\s?no entry\s?2 by bob at", plain(done)), plain(done)
    assert set(await grid.stored()) == {"a", "c"}
    assert len(await grid.actions()) == 1, "one request, one line in the audit log"

    await grid.http.post(f"{grid.api}/mass", json={"key": "d", "value": "new"})
    undone = await grid.undo(done)
    assert "2 undone, 1 not, because a later change would be lost." in plain(undone)
    assert await grid.stored() == {**before, "a": ("2", "scalar"), "d": ("new", "scalar")}
    assert len(await grid.actions()) == 2
    assert 'class="undo' not in undone.text


async def test_the_type_of_selected_rows_is_set_and_their_values_stay(grid: Grid) -> None:
    before = await grid.stored()
    fields = await grid.select("a", "b", "c")
    done = await grid.act(fields, "type", dataType="text")
    assert "3 changed." in plain(done)
    assert await grid.stored() == {
        key: (value, "text" if key in "abc" else kind) for key, (value, kind) in before.items()
    }
    assert "3 undone." in plain(await grid.undo(done))
    assert await grid.stored() == before

    refused = await grid.act(await grid.select("a", "d"), "type", dataType=" ?")
    assert (refused.status_code, "2 refused" in plain(refused)) == (409, True)
    assert await grid.stored() == before


async def test_a_text_is_replaced_in_the_selected_values_that_have_it(grid: Grid) -> None:
    before = await grid.stored()
    fields = await grid.select("a", "b", "c", "d", "e")
    await grid.http.post(f"{grid.api}/mass", json={"key": "e", "value": "11"})
    done = await grid.act(fields, "replace", replaced="1", replacement="one")
    assert "1 changed, 1 not, because a later change would be lost." in plain(done)
    assert await grid.stored() == {**before, "a": ("one", "scalar"), "e": ("11", "scalar")}
    assert "1 undone." in plain(await grid.undo(done))
    done = await grid.act(await grid.select("a", "b"), "replace", replaced="x", replacement="")
    assert (await grid.stored())["b"] == ("\r\ny", "scalar"), "the line ends stay"
    for replaced, reason in (("", "Type the text to replace."), ("z", "No selected value has the text “z”.")):
        refused = await grid.act(await grid.select("a", "c"), "replace", replaced=replaced, replacement="one")
        assert (refused.status_code, reason in plain(refused)) == (400, True)


async def test_selected_rows_are_copied_exported_and_plotted(grid: Grid) -> None:
    fields = await grid.select("b", "c", "d", "e")
    copied = await grid.act(fields, "copy")
    assert copied.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert copied.text == (
        'key\tvalue\tdataType\nb\t"x\r\ny"\tscalar\nc\t\tscalar\nd\t\tscalar\ne\t"=1+""1""\t2"\tscalar\n'
    )
    exported = (await grid.act(fields, "csv")).text
    whole = (await grid.http.get(grid.api, params={"format": "csv"})).text
    lines = whole.splitlines(keepends=True)
    assert lines[1].startswith('"a",')
    assert exported == "".join([lines[0], *lines[2:]]), "as the API's CSV"
    plotted = await grid.act(await grid.select("a", "b"), "plot")
    assert (plotted.status_code, plotted.headers["Location"]) == (303, f"{grid.page}/plot?key=a&key=b")
    assert await grid.actions() == []


async def test_nothing_is_done_without_rows_or_the_right(app: Application, grid: Grid, make_key: MakeKey) -> None:
    before = await grid.stored()
    fields = await grid.select("a")
    assert (await grid.act({**fields, "row": []}, "delete")).status_code == 400
    assert (await grid.act(fields, "other")).status_code == 400
    assert (await grid.act(fields, "undo", undo="[1]")).status_code == 400
    assert (await grid.act({**fields, "form_token": "0" * 64}, "delete")).status_code == 403
    nine = {**fields, "row": [f"{'0' * 32} k{number}" for number in range(9)]}
    assert "A plot has up to 8 keys" in (await grid.act(nine, "plot")).text
    async with visiting(app) as other:
        await sign_in(other, make_key("reader", "reader"))
        reader = Grid(other, grid.http, grid.page, grid.api)
        shown = await other.get(grid.page)
        assert re.findall(r'name="action" value="(\w+)"', shown.text) == ["copy", "csv", "plot"]
        selected = await reader.select("a", "d")
        assert (await reader.act(selected, "copy")).text == "key\tvalue\tdataType\na\t1\tscalar\nd\t\tscalar\n"
        for action in ("delete", "type"):
            assert (await reader.act(selected, action, dataType="text")).status_code == 403
    assert await grid.stored() == before


async def test_an_import_is_undone_at_once_except_what_changed_after_it(grid: Grid) -> None:
    before = await grid.stored()
    table = "key;value;type\r\na;2;text\r\na;3;text\r\nc;4;\r\nd;;\r\nn;5;\r\nm;6;\r\n..;7;\r\n"
    choices = {"table": table, "shape": "rows", "header": "true"}
    preview = await send(grid.browser, f"{grid.page}/import", **choices)
    seen = dict(HIDDEN.findall(preview.text.partition('<form class="fields')[2]))
    sent = {**choices, **seen, "apply": "true"}
    done = await grid.browser.post(f"{grid.page}/import", data=sent, headers=OWN)
    assert "2 new, 3 changed, 1 unchanged, 1 rejected." in plain(done)
    assert "Undo the import" in done.text
    assert (await grid.stored())["a"] == ("3", "text")
    again = await grid.browser.post(f"{grid.page}/import", data=sent, headers=OWN)
    assert (again.status_code, "nothing was written" in again.text) == (409, True), "a page that is loaded again"

    await grid.http.post(f"{grid.api}/mass", json={"key": "m", "value": "60"})
    undone = await grid.undo(done)
    assert "3 undone, 1 not, because a later change would be lost." in plain(undone)
    assert await grid.stored() == {**before, "m": ("60", "scalar")}
    assert (await grid.stored())["c"] == (None, "scalar")


async def test_protected_rows_stay_and_the_other_ones_are_changed(grid: Grid) -> None:
    """The sink protects entries that a pipeline feeds (contract M13), and the page says before what it does."""
    fed = {
        "entries": [{"key": "a", "value": "2"}],
        "origins": [{"source": "bench", "pipeline": "bench-a3", "count": 1}],
    }
    assert (await grid.http.post(f"{grid.api}/mass", json=fed)).is_success
    some = "Pipelines wrote some of these entries, and "
    table = {"table": "key;value\na;3\nd;4\n", "shape": "rows", "header": "true"}
    assert some + "overwrite your change" in plain(await send(grid.browser, f"{grid.page}/import", **table))
    own = {**table, "table": "key;value\na;2\nd;4\n"}
    assert some not in plain(await send(grid.browser, f"{grid.page}/import", **own)), "only the own entry changes"

    assert (await grid.http.patch(grid.api, json={"protectFedEntries": True})).is_success
    before = await grid.stored()
    assert some + "this data sink protects them" in plain(await grid.browser.get(grid.page))
    preview = await send(grid.browser, f"{grid.page}/import", **table)
    assert "0 new 1 changed 0 unchanged 1 rejected" in plain(preview)
    done = await grid.act(await grid.select("a", "d", "e"), "delete")
    assert "2 deleted, 1 refused." in plain(done)
    assert "a: The entry 'a' was written from bench, pipeline bench-a3, and this data sink protects" in plain(done)
    assert await grid.stored() == {key: before[key] for key in "abc"}
    assert "2 undone." in plain(await grid.undo(done))
    assert await grid.stored() == before
    refused = await grid.act(await grid.select("a"), "type", dataType="text")
    assert (refused.status_code, "1 refused" in plain(refused)) == (409, True)
    assert await grid.stored() == before
