"""The forms without a browser: what they change, and that they change nothing that the API would refuse."""

from __future__ import annotations

import asyncio
import html
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import openpyxl
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_pages import OWN, sign_in, visiting
from tests.support.api_client import api_client
from workspaced.app import Application
from workspaced.ui import application
from workspaced.ui.edit import table_import

DEADLINE_SECONDS = 30
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


@pytest.fixture
async def browser(app: Application, make_key: MakeKey) -> AsyncIterator[httpx.AsyncClient]:
    async with visiting(app) as client:
        await sign_in(client, make_key("anna"))
        yield client


@pytest.fixture
async def http(app: Application, make_key: MakeKey) -> AsyncIterator[httpx.AsyncClient]:
    async with api_client(app, make_key("bob")) as client:
        yield client


async def hidden_of(browser: httpx.AsyncClient, path: str) -> dict[str, str]:
    """Return the hidden fields of the form on a page."""
    shown = await browser.get(path)
    assert shown.status_code == 200, shown.text
    form = shown.text.partition('<form class="fields')[2]
    return dict(HIDDEN.findall(form))


async def send(browser: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """Open a form, fill it in and send it."""
    filled = {**await hidden_of(browser, path), **fields}
    return await browser.post(path, data=filled, headers=OWN)


async def workspace_of(http: httpx.AsyncClient, label: str = "Rover") -> str:
    return str((await http.post("/v1/workspace", json={"label": label})).json()["id"])


async def sink_of(http: httpx.AsyncClient, workspace: str, entries: dict[str, str | None] | None = None) -> str:
    items = [{"key": key, "value": value, "dataType": "scalar"} for key, value in (entries or {}).items()]
    made = await http.post(f"/v1/workspace/{workspace}/data-sink", json={"label": "Masses", "entries": items})
    return str(made.json()["visibleId"])


def texts(page: httpx.Response, kind: str) -> list[str]:
    """Return the texts of the elements with a class, without tags."""
    found = re.findall(rf'<p class="{kind}"[^>]*>(.*?)</p>', page.text, re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in found]


async def test_a_workspace_a_sink_and_a_block_are_created_changed_and_deleted(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    made = await send(browser, "/ui/workspaces/new", label="Rover")
    assert made.status_code == 303
    page = made.headers["Location"]
    workspace = page.rpartition("/")[2]
    api = f"/v1/workspace/{workspace}"
    assert (await send(browser, f"{page}/edit", label="Lander", publicCanReadEnabled="true")).headers[
        "Location"
    ] == page
    record = (await http.get(api)).json()
    assert (record["label"], record["publicCanReadEnabled"], record["exportsEnabled"]) == ("Lander", True, False)

    sink = (await send(browser, f"{page}/new-sink", label="Masses", description="a\r\nb")).headers["Location"]
    await send(browser, f"{sink}/edit", label="Mass budget", description="a\r\nb", tags="x")
    (stored,) = (await http.get(f"{api}/data-sink/list")).json()
    assert (stored["label"], stored["description"], stored["tags"], stored["updatedBy"]) == (
        "Mass budget",
        "a\nb",
        "x",
        "anna",
    )
    assert (await send(browser, f"{sink}/delete")).headers["Location"] == page
    assert (await http.get(f"{api}/data-sink/list")).json() == []

    block = (
        await send(browser, f"{page}/blocks/new", label="Wheel", multiplicity="1.50", type="part\r\nsteel")
    ).headers["Location"]
    child = await send(
        browser,
        f"{page}/blocks/new?parent={block.rpartition('/')[2]}",
        multiplicity="1",
        parentBlock=block.rpartition("/")[2],
    )
    assert child.status_code == 303
    await send(browser, f"{block}/edit", label="Tyre", multiplicity="6", type="part", parentBlock=record["rootBlock"])
    changed = (await http.get(f"{api}/blocks/{block.rpartition('/')[2]}")).json()
    assert (changed["label"], changed["multiplicity"], changed["type"]) == ("Tyre", 6, ["part"])
    refused = await send(browser, f"{block}/delete")
    assert refused.status_code == 409
    assert (await send(browser, f"{block}/delete", force="true")).headers["Location"] == f"{page}/blocks"
    assert len((await http.get(f"{api}/blocks")).json()) == 1

    assert (await send(browser, f"{page}/delete")).headers["Location"] == "/ui/workspaces"
    assert (await http.get(api)).status_code == 404


async def test_rare_members_are_stored_and_left_as_they_are(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    own = "7f8f2f2a-5a2b-4c5e-9d25-0e8f6d1f3a11"
    page = (await send(browser, "/ui/workspaces/new", label="Rover", id=own, statuses="Draft\r\n\r\nReleased")).headers[
        "Location"
    ]
    assert page.endswith(own)
    assert (await http.get(f"/v1/workspace/{own}")).json()["statuses"] == ["Draft", "Released"]
    assert "Released" in (await browser.get(page)).text

    icon = {"icon.name": "python", "icon.color": "teal", "icon.metadata": '{"size": 1.50}'}
    sink = (await send(browser, f"{page}/new-sink", label="Masses", **icon)).headers["Location"]
    api = f"/v1/workspace/{own}/data-sink/{sink.rpartition('/')[2]}"
    stored = await http.get(api)
    assert stored.json()["icon"] == {"name": "python", "color": "teal", "metadata": {"size": 1.5}}
    assert "1.50" in stored.text
    assert 'fill="teal"' in (await browser.get(sink)).text
    assert 'fill="teal"' in (await browser.get(page)).text
    refused = await send(browser, f"{sink}/edit", label="Masses", **{**icon, "icon.metadata": "[1]"})
    assert refused.status_code == 400
    assert len(texts(refused, "error")) == 1
    assert '<details class="rare" open>' in refused.text
    await send(browser, f"{sink}/edit", label="Masses", **{**icon, "icon.color": "url(https://example.org/x)"})
    assert "<svg" not in (await browser.get(sink)).text
    await send(browser, f"{sink}/edit", label="Masses", **dict.fromkeys(icon, ""))
    assert (await http.get(api)).json()["icon"] is None

    links = ["https://example.org", "two\nlines"]
    body = {"workspace": own, "label": "Wheel", "externalLinks": links, "pdmEnabled": True}
    block = (await http.post(f"/v1/workspace/{own}/blocks", json=body)).json()["id"]
    changed = {"label": "Tyre", "externalLinks": "\r\n".join(links), "figures": "a\r\nb", "orderIndex": "2.5"}
    assert (await send(browser, f"{page}/blocks/{block}/edit", **changed, pdmEnabled="true")).status_code == 303
    after = (await http.get(f"/v1/workspace/{own}/blocks/{block}")).json()
    assert (after["label"], after["externalLinks"], after["figures"]) == ("Tyre", links, ["a", "b"])
    assert (after["orderIndex"], after["pdmEnabled"]) == (2.5, True)


async def test_a_mistake_is_shown_beside_its_field_in_the_words_of_the_api(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    by_api = (
        await http.post("/v1/workspace", json={"label": "l" * 300}, headers={"Accept": "application/problem+json"})
    ).json()
    shown = await send(browser, "/ui/workspaces/new", label="l" * 300)
    assert shown.status_code == 400
    assert texts(shown, "error") == [by_api["errors"][0]["detail"]]
    assert f'value="{"l" * 300}"' in shown.text, "what was typed is kept"
    page = f"/ui/workspaces/{await workspace_of(http)}"
    shown = await send(browser, f"{page}/blocks/new", label="Wheel", multiplicity="six")
    assert (shown.status_code, len(texts(shown, "error"))) == (400, 1)


async def test_a_form_does_not_overwrite_a_change_of_another_user(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace)
    page, api = f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"
    fields = {**await hidden_of(browser, f"{page}/edit"), "label": "Mine", "description": "", "tags": ""}
    await http.post(f"{api}/mass", json={"key": "k", "value": "1"})  # an entry is no change of the form
    assert (await http.patch(api, json={"label": "Theirs"})).is_success
    conflict = await browser.post(f"{page}/edit", data=fields, headers=OWN)
    assert conflict.status_code == 409
    assert "bob changed this" in conflict.text
    assert texts(conflict, "error") == ["Now stored: Theirs"]
    assert 'value="Mine"' in conflict.text
    again = dict(HIDDEN.findall(conflict.text.partition('<form class="fields')[2]))
    assert (await browser.post(f"{page}/edit", data={**fields, **again}, headers=OWN)).status_code == 303
    assert (await http.get(api)).json()["label"] == "Mine"


async def test_a_key_sees_and_can_do_only_what_it_may(
    app: Application, http: httpx.AsyncClient, make_key: MakeKey
) -> None:
    workspace = await workspace_of(http)
    page = f"/ui/workspaces/{workspace}"
    async with visiting(app) as reader:
        await sign_in(reader, make_key("reader", "reader"))
        for path in ("/ui/workspaces", page, f"{page}/blocks"):
            shown = (await reader.get(path)).text
            assert re.findall(r">(?:New|Edit|Delete)\b", shown) == [], path
        for path in ("/ui/workspaces/new", f"{page}/edit", f"{page}/delete", f"{page}/new-sink"):
            assert (await send(reader, path, label="X")).status_code == 403, path
        upload = {"workspaceId": workspace, "fileName": "damaged.png"}
        headers = {"Content-Type": "image/png"}
        file = (await http.post("/v1/cloud-storage", params=upload, content=b"no", headers=headers)).json()["id"]
        hook = await http.post("/v1/webhooks", json={"url": "https://example.com/in"})
        await http.post(f"{hook.headers['Location']}/test")
        delivery, *_ = (await http.get(f"{hook.headers['Location']}/deliveries")).json()
        # The owner of a webhook may have a key that only reads.
        await sign_in(reader, make_key("bob", "reader"))
        hook_page = hook.headers["Location"].replace("/v1/", "/ui/")
        for path in (f"{page}/files", f"{page}/files/{file}", hook_page, f"{hook_page}/deliveries/{delivery['id']}"):
            shown = (await reader.get(path)).text
            assert re.findall(r"<button[^>]*>([^<]*)", shown) == ["Sign out"], path
    assert (await http.get(f"/v1/workspace/{workspace}")).json()["label"] == "Rover"


async def test_a_form_of_a_former_session_changes_nothing_and_keeps_what_was_typed(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"a": "1"})
    page = f"/ui/workspaces/{workspace}"
    table = {"table": "a\t2\nb\t3"}
    forms = {
        f"{page}/edit": {"label": "Typed"},
        f"{page}/new-sink": {"label": "Typed"},
        f"{page}/sinks/{sink}/new-entry": {"key": "Typed", "value": "1", "dataType": "scalar"},
        f"{page}/sinks/{sink}/entries/a/edit": {"value": "Typed", "dataType": "scalar"},
        f"{page}/sinks/{sink}/import": table,
        f"{page}/sinks/{sink}/delete": {},
        f"{page}/delete": {},
        f"{page}/sinks/{sink}/history": {"changes": "87", "days": "9"},
        "/ui/webhooks/new": {"url": "http://127.0.0.1:9/Typed", "dataEvents": "*"},
        "/ui/keys": {"name": "Typed", "role": "pusher"},
    }
    before = [(await http.get(path)).json() for path in ("/v1/workspace", f"/v1/workspace/{workspace}/data-sink")]
    for path, fields in forms.items():
        hidden = await hidden_of(browser, path)
        refused = await browser.post(path, data={**hidden, **fields, "form_token": "0" * 64}, headers=OWN)
        assert refused.status_code == 403, path
        assert "This form is from another session, so nothing was saved." in refused.text
        assert all(html.escape(text) in refused.text for text in fields.values()), path
        assert hidden["form_token"] in refused.text, "it can be sent again"
    assert [
        (await http.get(path)).json() for path in ("/v1/workspace", f"/v1/workspace/{workspace}/data-sink")
    ] == before
    assert (await http.get("/v1/webhooks")).json() == []
    assert "Typed" not in (await browser.get("/ui/keys")).text


async def test_a_form_that_is_too_long_is_refused(browser: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    refused = await send(browser, "/ui/workspaces/new", label="l" * 1_100_000)
    assert refused.status_code == 413
    assert (await http.get("/v1/workspace")).json() == []


async def change(browser: httpx.AsyncClient, sink_page: str, **fields: str) -> tuple[httpx.Response, dict[str, str]]:
    """Send an action as the grid does. Return the response, and the form that undoes the action."""
    token = re.search(r'name="form_token" value="(\w+)"', (await browser.get(sink_page)).text)
    assert token
    headers = {**OWN, "Accept": "application/json"}
    done = await browser.post(f"{sink_page}/changes", data={**fields, "form_token": token[1]}, headers=headers)
    undo = HIDDEN.findall(done.text.partition('<form class="undo">')[2])
    return done, {name: html.unescape(value) for name, value in undo}


async def shown_of(browser: httpx.AsyncClient, sink_page: str, key: str) -> str:
    found = re.search(rf'data-key="{re.escape(key)}" data-shown="(\w+)"', (await browser.get(sink_page)).text)
    assert found
    return found[1]


async def test_each_action_of_the_grid_can_be_undone_in_turn(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"mass": "1", "nothing": None, "lines": "a\r\nb\rc\nd"})
    page, api = f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"

    async def state() -> dict[str, tuple[str | None, str]]:
        return {one["key"]: (one["value"], one["dataType"]) for one in (await http.get(api)).json()["entries"]}

    states, undos = [await state()], []
    for fields in (
        {"action": "set", "key": "mass", "value": "2"},
        {"action": "set", "key": "mass", "dataType": "text"},
        {"action": "set", "key": "nothing", "value": "<b>"},
        {"action": "create", "key": "a/b", "value": "=1\r\n2", "dataType": "text"},
        {"action": "delete", "key": "mass"},
        {"action": "delete", "key": "lines"},
    ):
        shown = "" if fields["action"] == "create" else await shown_of(browser, page, fields["key"])
        done, undo = await change(browser, page, shown=shown, **fields)
        assert done.status_code == 200, done.text
        states.append(await state())
        undos.append(undo)
    assert states[-1] == {"a/b": ("=1\n2", "text"), "nothing": ("<b>", "scalar")}
    for undo, before in reversed(list(zip(undos, states, strict=False))):
        undone, _ = await change(browser, page, **undo)
        assert undone.status_code == 200, undone.text
        assert await state() == before


async def test_an_action_and_its_undo_are_refused_after_a_change_of_another_user(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"mass": "1"})
    page, api = f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"
    _, undo = await change(
        browser, page, action="set", key="mass", value="2", shown=await shown_of(browser, page, "mass")
    )
    stale = await shown_of(browser, page, "mass")
    await http.post(f"{api}/mass", json={"key": "mass", "value": "3"})
    for fields in (undo, {"action": "set", "value": "4", "shown": stale}, {"action": "delete", "shown": stale}):
        refused, _ = await change(browser, page, **{**fields, "key": "mass"})
        assert refused.status_code == 409
        assert texts(refused, "error")[0].startswith("bob changed this entry at ")
        assert f'data-shown="{await shown_of(browser, page, "mass")}"' in refused.text, "with the present row"
    assert (await http.get(f"{api}/mass")).json()["value"] == "3"


async def test_line_ends_stay_as_they_are_stored(browser: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"dos": "a\r\nb", "unix": "a\nb", "mixed": "a\r\nb\nc", "mac": "a\rb"})
    page, api = f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"
    for key, sent, stored in (
        ("dos", "a\r\nb\r\nc", "a\r\nb\r\nc"),
        ("unix", "a\r\nc", "a\nc"),
        ("mixed", "a\r\nb\r\nc", "a\r\nb\nc"),
        ("mac", "a\r\nb", "a\rb"),
    ):
        assert (await send(browser, f"{page}/entries/{key}/edit", value=sent, dataType="text")).status_code == 303
        assert (await http.get(f"{api}/{key}")).json()["value"] == stored


async def test_an_entry_is_added_changed_and_deleted_without_scripts(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace)
    page, api = f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"
    assert (await send(browser, f"{page}/new-entry", key="m", value="1", dataType="scalar")).status_code == 303
    twice = await send(browser, f"{page}/new-entry", key="m", value="1", dataType="scalar")
    assert twice.status_code == 409
    assert (await send(browser, f"{page}/entries/m/edit", value="", null="true", dataType="text")).status_code == 303
    record = (await http.get(f"{api}/m")).json()
    assert (record["value"], record["dataType"], record["updatedBy"]) == (None, "text", "anna")
    assert (await send(browser, f"{page}/entries/m/delete")).status_code == 303
    assert (await http.get(f"{api}/m")).status_code == 404


async def test_a_table_is_shown_before_it_is_written(browser: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"a": "1", "b": "2"})
    page, api = f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"
    table = "key;value\r\na;1\r\nb;1.234,5\r\nc;3\r\n..;4\r\n"
    choices = {"table": table, "shape": "rows", "header": "true", "comma": "true"}
    preview = await send(browser, f"{page}/import", **choices)
    assert re.findall(r"<li class=\"state[^>]*>([\d]+ \w+)</li>", preview.text) == [
        "1 new",
        "1 changed",
        "1 unchanged",
        "1 rejected",
    ]
    assert "Write 2 entries" in preview.text
    assert ">key can&#39;t be &#39;.&#39; or &#39;..&#39;" in preview.text, "without the number of the item"
    assert len((await http.get(api)).json()["entries"]) == 2, "a preview writes nothing"
    seen = dict(HIDDEN.findall(preview.text.partition('<form class="fields')[2]))
    await http.post(f"{api}/mass", json={"key": "b", "value": "9"})
    changed = await browser.post(f"{page}/import", data={**choices, **seen, "apply": "true"}, headers=OWN)
    assert (changed.status_code, "changed since this preview" in changed.text) == (409, True)
    seen = dict(HIDDEN.findall(changed.text.partition('<form class="fields')[2]))
    done = await browser.post(f"{page}/import", data={**choices, **seen, "apply": "true"}, headers=OWN)
    assert done.status_code == 200
    assert "1 new, 1 changed, 1 unchanged, 1 rejected." in done.text
    entries = {one["key"]: (one["value"], one["updatedBy"]) for one in (await http.get(api)).json()["entries"]}
    assert entries == {"a": ("1", "bob"), "b": ("1234.5", "anna"), "c": ("3", "anna")}


async def test_a_preview_says_how_the_table_is_read_and_which_values_are_texts(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    workspace = await workspace_of(http)
    page = f"/ui/workspaces/{workspace}/sinks/{await sink_of(http, workspace)}/import"
    table = "Mass budget\r\n\r\nkey;value\r\na;1\r\nb;2\r\nc;1,5\r\nd;4\r\n"
    preview = await send(browser, page, table=table)
    assert "Row 3 has the names of the columns: key, value. Rows 1 to 2 are left out. Each row is" in preview.text
    assert "1 value is a text in a column of numbers: row 6." in preview.text
    first = re.findall(r'<tr>\s*<td data-label="Row">(\d+)</td>', preview.text)[0]
    assert first == "6", "it is shown first"
    choices = {"table": table, "shape": "rows", "header": "true", "comma": "true"}
    better = await send(browser, page, **choices, first="3")
    assert "a column of numbers" not in better.text
    other = await send(browser, page, **choices, first="4")
    assert "Row 4 has the names of the columns: a, 1. Rows 1 to 3 are left out." in other.text
    for wrong in ("0", "x"):
        refused = await send(browser, page, **choices, first=wrong)
        assert (refused.status_code, "number of the row in which the table begins" in refused.text) == (400, True)


@pytest.mark.parametrize(("module", "slow"), [(table_import, "cells_of"), (application, "parse_qsl")])
async def test_other_requests_continue_while_a_large_table_is_read(
    browser: httpx.AsyncClient,
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    slow: str,
) -> None:
    workspace = await workspace_of(http)
    page = f"/ui/workspaces/{workspace}/sinks/{await sink_of(http, workspace)}/import"
    token = (await hidden_of(browser, page))["form_token"]
    begun, responded, work = threading.Event(), threading.Event(), getattr(module, slow)

    def wait(*given: Any, **named: Any) -> Any:
        begun.set()
        assert responded.wait(DEADLINE_SECONDS)
        return work(*given, **named)

    monkeypatch.setattr(module, slow, wait)
    form = {"form_token": token, "table": "key,value\n" + "".join(f"k{number},1\n" for number in range(2_000))}
    reading = asyncio.create_task(browser.post(page, data=form, headers=OWN))
    assert await asyncio.to_thread(begun.wait, DEADLINE_SECONDS)
    assert (await http.get("/healthz")).status_code == 200
    responded.set()
    assert (await reading).status_code == 200


async def test_files_of_tables_are_read_and_others_are_refused_with_a_sentence(
    browser: httpx.AsyncClient, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    workspace = await workspace_of(http)
    page = f"/ui/workspaces/{workspace}/sinks/{await sink_of(http, workspace)}"
    token = (await hidden_of(browser, f"{page}/import"))["form_token"]
    workbook = tmp_path / "b.xlsx"
    made = openpyxl.Workbook()
    assert made.active is not None
    for row in (["key", "value"], ["00417", 417.0], ["x", 0.1]):
        made.active.append(row)
    made.active.title = "Masses"
    made.create_sheet("Notes")
    made.save(workbook)

    async def read(name: str, content: bytes, proof: str = token) -> httpx.Response:
        headers = {**OWN, "Accept": "application/json", "X-Form-Token": proof}
        return await browser.post(f"{page}/import/file?name={name}", content=content, headers=headers)

    assert (await read("b.xlsx", workbook.read_bytes())).json() == {
        "text": "key\tvalue\n00417\t417\nx\t0.1\n",
        "sheet": "Masses",
        "others": 1,
    }
    assert (await read("a.csv", "k;é".encode("windows-1252"))).json()["text"] == "k;é"
    for name, content in (("b.xlsx", b"PK damaged"), ("a.csv", b"\0\1")):
        refused = await read(name, content)
        assert refused.status_code == 400
        assert refused.json()["detail"]
    assert (await read("a.csv", b"a", "0" * 64)).status_code == 403
    assert (await read("a.csv", b"a" * 4_200_000)).status_code == 413


async def test_a_dry_run_reports_each_item_and_writes_nothing(http: httpx.AsyncClient) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"a": "1", "b": "2"})
    api = f"/v1/workspace/{workspace}/data-sink/{sink}"
    items = [
        {"key": "a", "value": "1"},
        {"key": "b", "value": "3"},
        {"key": "b", "value": "3"},
        {"key": "n", "value": "4"},
        {"key": "a", "delete": True},
        {"key": "gone", "delete": True},
        {"key": "..", "value": "5"},
    ]
    before = (await http.get(api)).headers["ETag"]
    done = (await http.post(f"{api}/mass", params={"dryRun": "true"}, json=items)).json()
    effects = ["unchanged", "updated", "unchanged", "created", "deleted", "unchanged", None]
    assert [one.get("effect") for one in done["results"]] == effects
    assert (done["results"][1]["entry"]["value"], done["succeeded"], done["failed"]) == ("2", 6, 1)
    assert (await http.get(api)).headers["ETag"] == before
    single = await http.post(f"{api}/mass", params={"dryRun": "true"}, json={"key": "a", "value": "2"})
    assert (single.status_code, (await http.get(api)).headers["ETag"]) == (400, before)


async def test_a_file_is_uploaded_changed_and_deleted(browser: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    workspace = await workspace_of(http)
    page = f"/ui/workspaces/{workspace}/files"
    token = (await hidden_of(browser, "/ui/workspaces/new"))["form_token"]

    async def upload(proof: str, name: str = "a b.csv") -> httpx.Response:
        headers = {**OWN, "Accept": "application/json", "X-Form-Token": proof, "Content-Type": "text/csv"}
        return await browser.post(
            f"{page}/upload", params={"name": name}, content=b"k,v\n1,2\n" * 9_000, headers=headers
        )

    assert (await upload("0" * 64)).status_code == 403
    assert (await upload(token, "")).status_code == 400
    stored = await upload(token)
    assert stored.status_code == 201, stored.text
    file = stored.json()["page"]
    assert (await send(browser, f"{file}/edit", fileName="c.csv", description="x\r\ny", tags="")).status_code == 303
    (record,) = (await http.get("/v1/cloud-storage", params={"workspaceId": workspace})).json()
    assert (record["fileName"], record["description"], record["tags"], record["size"]) == (
        "c.csv",
        "x\ny",
        None,
        72_000,
    )
    headers = {**OWN, "Accept": "application/json", "X-Form-Token": token, "Content-Type": "text/plain"}
    newer = await browser.post(f"{file}/upload", params={"name": "other.csv"}, content=b"k,v\n", headers=headers)
    assert (newer.status_code, newer.json()["page"]) == (201, file)
    (record,) = (await http.get("/v1/cloud-storage", params={"workspaceId": workspace})).json()
    assert (record["fileName"], record["contentType"], record["size"], record["version"]) == ("c.csv", "text/csv", 4, 2)

    assert (await send(browser, f"{file}/metadata", metadata='{"material": "AlSi10Mg", "n": 0.10}')).status_code == 303
    metadata = f"/v1/cloud-storage/metadata/{record['id']}"
    assert (await http.get(metadata)).text.replace(" ", "") == '{"material":"AlSi10Mg","n":0.10}'
    assert "AlSi10Mg" in (await browser.get(file)).text
    assert (await send(browser, f"{file}/metadata", metadata="{")).status_code == 400
    old = await hidden_of(browser, f"{file}/metadata")
    await http.put(metadata, json={"material": "steel"})
    late = await browser.post(f"{file}/metadata", data={**old, "metadata": "{}"}, headers=OWN)
    assert late.status_code == 409
    assert "steel" in late.text
    assert (await http.get(metadata)).json() == {"material": "steel"}
    assert (await send(browser, f"{file}/delete")).headers["Location"] == page
    assert (await http.get("/v1/cloud-storage", params={"workspaceId": workspace})).json() == []


async def test_the_audit_log_is_limited_to_days_and_a_key_to_some_permissions(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    await workspace_of(http)
    shown = (await browser.get("/ui/audit", params={"action": "workspace.*", "from": "2020-01-01"})).text
    assert "workspace.created" in shown
    shown = (await browser.get("/ui/audit", params={"action": "workspace.*", "to": "2020-01-01"})).text
    assert ">workspace.created<" not in shown
    token = (await hidden_of(browser, "/ui/workspaces/new"))["form_token"]
    data = {"form_token": token, "name": "carl", "role": "editor", "scopes": ["data_sinks:read", "workspaces:read"]}
    issued = await browser.post("/ui/keys", data={**data, "guest": "true"}, headers=OWN)
    assert issued.status_code == 200, issued.text
    (key,) = [one for one in (await http.get("/v1/api-keys")).json() if one["name"] == "carl"]
    assert (sorted(key["scopes"]), key["guest"]) == (["data_sinks:read", "workspaces:read"], True)


async def test_a_webhook_is_created_changed_and_deleted(browser: httpx.AsyncClient, http: httpx.AsyncClient) -> None:
    rover, lander = await workspace_of(http), await workspace_of(http, "Lander")
    made = await send(
        browser,
        "/ui/webhooks/new",
        url="https://example.com/in",
        enabled="true",
        dataEvents="data_sink.*\r\nblock.created\r\n",
        headers="X-Bench: 7",
        inOrder="true",
        **{"oauthConnection.tokenUrl": "https://example.com/token", "oauthConnection.clientId": "bench"},
        **{"oauthConnection.clientSecret": "hunter2-client"},
    )
    assert made.status_code == 303, made.text
    page = made.headers["Location"]
    api = page.replace("/ui/", "/v1/")
    record = (await http.get(api)).json()
    assert (record["label"], record["dataEvents"]) == ("example.com", ["data_sink.*", "block.created"])
    assert (record["inOrder"], record["coalesce"], record["enabled"]) == (True, False, True)
    assert record["oauthConnection"] == {"tokenUrl": "https://example.com/token", "clientId": "bench"}

    form = await browser.get(f"{page}/edit")
    assert "X-Bench: 7" in form.text
    assert "hunter2-client" not in form.text
    changed = await browser.post(
        f"{page}/edit",
        data={
            **await hidden_of(browser, f"{page}/edit"),
            "url": "https://example.com/in",
            "label": "Bench",
            "dataEvents": "*",
            "headers": "X-Bench: 8",
            "workspaceIds": [rover, lander],
            "oauthConnection.tokenUrl": "https://example.com/token",
            "oauthConnection.clientId": "bench",
        },
        headers=OWN,
    )
    assert changed.headers["Location"] == page, changed.text
    record = (await http.get(api)).json()
    assert (record["label"], record["enabled"], record["inOrder"]) == ("Bench", False, False)
    assert sorted(record["workspaceIds"]) == sorted([rover, lander])
    assert record["oauthConnection"]["clientId"] == "bench"

    secret = re.findall(r'value="(whsec_[^"]*)"', html.unescape((await browser.get(page)).text))
    rotated = await browser.post(
        f"{page}/rotate-secret",
        data={"form_token": (await hidden_of(browser, f"{page}/edit"))["form_token"]},
        headers=OWN,
    )
    assert rotated.headers["Location"] == page
    after = re.findall(r'value="(whsec_[^"]*)"', html.unescape((await browser.get(page)).text))
    assert len(secret) == len(after) == 1
    assert secret != after
    assert (await send(browser, f"{page}/delete")).headers["Location"] == "/ui/webhooks"
    assert (await http.get(api)).status_code == 404


async def test_mistakes_of_a_webhook_are_beside_their_fields_and_secrets_are_not_repeated(
    browser: httpx.AsyncClient,
) -> None:
    shown = await send(
        browser,
        "/ui/webhooks/new",
        url="https://example.com/in",
        signingSecret="too-short",
        headers="no colon",
        **{"oauthConnection.tokenUrl": "https://example.com/token", "oauthConnection.clientId": "bench"},
    )
    assert shown.status_code == 400
    assert 'id="signingSecret-error"' in shown.text
    assert 'id="headers-error"' in shown.text
    assert "too-short" not in shown.text
    shown = await send(
        browser,
        "/ui/webhooks/new",
        url="https://example.com/in",
        **{"oauthConnection.tokenUrl": "https://example.com/token", "oauthConnection.clientId": "bench"},
    )
    assert 'id="oauthConnection.clientSecret-error"' in shown.text


async def test_another_user_can_change_a_webhook_but_not_what_only_its_owner_sees(
    browser: httpx.AsyncClient, http: httpx.AsyncClient
) -> None:
    made = await http.post(
        "/v1/webhooks", json={"url": "https://example.com/in", "headers": ["X-Token: secret-of-bob"]}
    )
    api = made.headers["Location"]
    page = api.replace("/v1/", "/ui/")
    assert "whsec_" not in (await browser.get(page)).text
    form = await browser.get(f"{page}/edit")
    assert 'name="headers"' not in form.text
    saved = await send(browser, f"{page}/edit", url="https://example.com/in", label="Bench", dataEvents="*")
    assert saved.status_code == 303, saved.text
    record = (await http.get(api)).json()
    assert (record["label"], record["headers"]) == ("Bench", ["X-Token: secret-of-bob"])


async def test_a_key_that_may_not_write_webhooks_sees_no_buttons_and_is_refused(
    app: Application, http: httpx.AsyncClient, make_key: MakeKey
) -> None:
    async with visiting(app) as reader:
        await sign_in(reader, make_key("carl", role="reader"))
        made = await http.post("/v1/webhooks", json={"url": "https://example.com/in"})
        assert "New webhook" not in (await reader.get("/ui/webhooks")).text
        token = (await hidden_of(reader, "/ui/webhooks/new"))["form_token"]
        refused = await reader.post(
            "/ui/webhooks/new", data={"form_token": token, "url": "https://example.com/in"}, headers=OWN
        )
        assert refused.status_code == 403
        assert (await reader.get(made.headers["Location"].replace("/v1/", "/ui/"))).status_code == 404


def restore_forms(page: httpx.Response) -> list[dict[str, str]]:
    """Return the fields of the forms that restore former values, the newest change first."""
    return [
        dict(HIDDEN.findall(form.partition("</form>")[0]))
        for form in re.split(r'action="[^"]*/restore">', page.text)[1:]
    ]


async def test_a_former_value_is_restored_as_an_edit_and_that_can_be_undone(
    app: Application, browser: httpx.AsyncClient, http: httpx.AsyncClient, make_key: MakeKey
) -> None:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace)
    api = f"/v1/workspace/{workspace}/data-sink/{sink}"
    entry = f"/ui/workspaces/{workspace}/sinks/{sink}/entries/mass"
    await http.patch(f"/v1/workspace/{workspace}/data-sink-history/{sink}", json={"changes": 1000})

    async def write(value: str, data_type: str = "scalar") -> None:
        item = {"key": "mass", "value": value, "dataType": data_type}
        assert (await http.post(f"{api}/mass", json=item)).is_success

    async def stored() -> tuple[str | None, str]:
        found = (await http.get(f"{api}/mass")).json()
        return found["value"], found["dataType"]

    for value in ("1\r\n2", "1\n2"):
        await write(value)
    assert (await http.patch(f"{api}/mass", json={"value": None})).is_success
    await write("3", "text")

    async def rows_of(page: str) -> list[str]:
        return re.split(r"<tr>", (await browser.get(page)).text.partition("<tbody>")[2])[1:]

    async def restore(number: int, **changed: str) -> httpx.Response:
        fields = restore_forms(await browser.get(f"{entry}/history"))[number]
        return await browser.post(f"{entry}/restore", data={**fields, **changed}, headers=OWN)

    sides = [re.findall(r'name="side" value="(\w+)"', row) for row in await rows_of(f"{entry}/history")]
    assert sides == [["before"], ["before", "after"], ["before", "after"], ["after"]], (
        "there is no button that changes nothing"
    )
    assert (await restore(0)).headers["location"] == f"{entry}/history"
    assert await stored() == (None, "scalar")
    await restore(2)
    assert await stored() == ("1\n2", "scalar")
    await restore(4)
    assert await stored() == ("1\r\n2", "scalar"), "line ends are restored exactly"
    await restore(0)
    assert await stored() == ("1\n2", "scalar"), "the newest change undoes the restoration"
    await restore(4, side="after")
    assert await stored() == ("3", "text"), "the value after a change is restored too"
    await restore(0)
    newest = (await http.get("/v1/audit-log", params={"take": "1"})).json()[0]
    assert (newest["action"], newest["principal"], newest["clientId"]) == (
        "data_sink.entry.updated",
        "anna",
        "workspaced-ui",
    )

    await http.delete(f"{api}/mass")
    await restore(0)
    assert await stored() == ("1\n2", "scalar"), "a deleted entry is created again"

    late = restore_forms(await browser.get(f"{entry}/history"))[1]
    await write("4")
    refused = await browser.post(f"{entry}/restore", data=late, headers=OWN)
    assert refused.status_code == 409
    assert "changed this entry at" in refused.text
    for wrong, status in (({"change": "0"}, 404), ({"form_token": "0" * 64}, 403)):
        assert (await restore(0, **wrong)).status_code == status
    async with visiting(app) as reader:
        await sign_in(reader, make_key("reader", "reader"))
        shown = await reader.get(f"{entry}/history")
        assert restore_forms(shown) == []
        token = re.search(r'name="form_token" value="(\w+)"', shown.text)
        assert token
        stolen = {**restore_forms(await browser.get(f"{entry}/history"))[0], "form_token": token[1]}
        assert (await reader.post(f"{entry}/restore", data=stolen, headers=OWN)).status_code == 403
    assert await stored() == ("4", "scalar")
