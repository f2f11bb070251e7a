"""The pages of histories without a browser: the chart of a range, the plot of several keys, and restoring a comparison."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_edit_pages import HIDDEN, sink_of, workspace_of
from tests.integration.workspaced.test_pages import OWN, sign_in, visiting
from tests.support.api_client import api_client
from workspaced.app import running
from workspaced.settings.model import WorkspacedSettings


class Recorded:
    """A sink with a history, for the API and for a browser. ``page`` and ``api`` are its addresses."""

    def __init__(self, browser: httpx.AsyncClient, http: httpx.AsyncClient, page: str, api: str) -> None:
        self.browser, self.http, self.page, self.api = browser, http, page, api
        self.history = api.replace("/data-sink/", "/data-sink-history/")

    async def write(self, key: str, *values: str) -> None:
        for value in values:
            assert (await self.http.post(f"{self.api}/mass", json={"key": key, "value": value})).is_success

    async def delete(self, key: str) -> None:
        assert (await self.http.delete(f"{self.api}/{key}")).is_success

    async def null(self, key: str) -> None:
        assert (await self.http.patch(f"{self.api}/{key}", json={"value": None})).is_success

    async def times(self, key: str) -> list[str]:
        """Return the instants of the changes of a key, the oldest first, as a form has them."""
        found = (await self.http.get(f"{self.history}/entry/{key}")).json()
        return [change["time"].rstrip("Z") for change in reversed(found)]

    async def entries(self) -> dict[str, str | None]:
        return {entry["key"]: entry["value"] for entry in (await self.http.get(self.api)).json()["entries"]}

    async def text(self, path: str) -> str:
        shown = await self.browser.get(f"{self.page}/{path}")
        assert shown.status_code == 200, shown.text
        return plain(shown)


def plain(page: httpx.Response) -> str:
    """Return the text of a page, without tags and with single spaces."""
    text = re.sub(r"<[^>]+>", "", page.text.partition("<main")[2])
    return " ".join(html.unescape(text).split())


@pytest.fixture
async def recorded(settings: WorkspacedSettings, make_key: MakeKey) -> AsyncIterator[Recorded]:
    async with (
        running(settings) as app,
        visiting(app) as browser,
        api_client(app, make_key("bob")) as http,
    ):
        await sign_in(browser, make_key("anna"))
        yield await recorded_sink(browser, http)


async def recorded_sink(browser: httpx.AsyncClient, http: httpx.AsyncClient) -> Recorded:
    workspace = await workspace_of(http)
    sink = await sink_of(http, workspace, {"constant": "7 kg"})
    made = Recorded(
        browser, http, f"/ui/workspaces/{workspace}/sinks/{sink}", f"/v1/workspace/{workspace}/data-sink/{sink}"
    )
    assert (await http.patch(made.history, json={"changes": 1000, "days": 100})).is_success
    return made


async def test_a_plot_has_a_line_an_axis_and_the_values_of_each_key(recorded: Recorded) -> None:
    await recorded.write("mass", "1 kg", "3 kg", "broken", "2 kg")
    await recorded.delete("mass")
    await recorded.write("heat", "280 K", "281 K")
    await recorded.write("note", "text")
    empty = await recorded.text("plot")
    assert "Name a key to see how its value changed." in empty
    keys = ["mass", "heat", "constant", "note", "none", "mass"]
    shown = await recorded.browser.get(f"{recorded.page}/plot", params={"key": keys})
    assert re.findall(r'<path class="stroke-(\d)" d="[^"]+" vector-effect', shown.text) == ["0", "1", "2"]
    assert re.findall(r'class="unit"[^>]*>(\w+)<', shown.text) == ["kg", "K"]
    first = re.findall(r'data-readings="([^"]*)"', shown.text)[0].split("\n")
    assert [line.split(" ", 1)[1].split(" ", 1)[1] for line in first] == ["1 kg", "3 kg", "broken", "2 kg", "no entry"]
    assert [line.split(" ")[1] == "-" for line in first] == [False, False, True, False, True]
    text = plain(shown)
    assert "none: There is no such entry" in text
    assert "note No line: it has no number." in text
    assert re.findall(r'name="key" value="([^"]*)" checked', shown.text) == ["mass", "heat", "constant", "note"]
    assert text.count("kg") > 5
    assert "7 kg" in text

    ten = await recorded.browser.get(f"{recorded.page}/plot", params={"key": [f"k{number}" for number in range(10)]})
    assert "A plot has up to 8 keys. Left out: k8, k9" in plain(ten)


async def test_a_chart_of_a_range_is_an_address(recorded: Recorded) -> None:
    await recorded.write("mass", *(f"{number} kg" for number in range(30)))
    page = f"{recorded.page}/entries/mass/history"
    whole = await recorded.browser.get(page)
    assert "30 values in kg, from 0 kg to 29 kg." in plain(whole)
    assert "Show all" not in plain(whole)
    times = await recorded.times("mass")
    begin, end = times[0][:-3], times[-1]
    part = await recorded.browser.get(page, params={"from": f"{begin}000", "to": end})
    assert part.status_code == 200
    links = dict(re.findall(r'<a class="button quiet" href="([^"]*)">([\w ]+)</a>', whole.text))
    for link in links:
        followed = await recorded.browser.get(html.unescape(link))
        assert "Show all" in plain(followed)
        assert len(re.findall(r"<path [^>]*data-readings", followed.text)) == 1
    for wrong, sentence in (
        ({"from": "soon"}, "Write a moment as"),
        ({"from": "2026-13-01T00:00"}, "There is no such day or time."),
        ({"from": "2026-02-02T00:00", "to": "2026-02-01T00:00"}, "The beginning of the chart must be before its end."),
    ):
        shown = await recorded.browser.get(page, params=wrong)
        assert sentence in plain(shown)
        assert "30 values in kg" in plain(shown), "a wrong range shows the whole"


def rows_of(page: httpx.Response) -> list[str]:
    return re.findall(r'<input type="checkbox" name="key" value="([^"]*)"', page.text)


async def compared(recorded: Recorded, since: str) -> tuple[dict[str, str], httpx.Response]:
    """Return the hidden fields of the form of a comparison with now, and its page."""
    shown = await recorded.browser.get(f"{recorded.page}/history", params={"from": since})
    assert shown.status_code == 200, shown.text
    return dict(HIDDEN.findall(shown.text.partition("history/restore")[2])), shown


async def restore(recorded: Recorded, fields: dict[str, str], *keys: str, **more: str) -> httpx.Response:
    body = {**fields, **more, "key": list(keys)}
    return await recorded.browser.post(f"{recorded.page}/history/restore", data=body, headers=OWN)


async def test_selected_rows_of_a_comparison_are_restored_unless_they_changed_since(recorded: Recorded) -> None:
    before: dict[str, str | None] = {"text": "a\r\nb", "null": "x", "gone": "1", "raced": "1", "kept": "1", "same": "1"}
    for key, value in before.items():
        await recorded.write(key, value or "")
    await recorded.null("null")
    since = (await recorded.times("null"))[-1]
    before["null"] = None
    await recorded.write("null", "y")
    for key in ("text", "raced", "kept", "same"):
        await recorded.write(key, "2")
    await recorded.delete("gone")
    await recorded.write("new", "1")

    fields, page = await compared(recorded, since)
    assert set(rows_of(page)) == {"null", "text", "raced", "kept", "same", "gone", "new"}
    await recorded.write("raced", "3")
    await recorded.write("same", "1")
    done = await restore(recorded, fields, "null", "text", "raced", "same", "gone", "new", "never")
    assert done.status_code == 200, done.text
    text = plain(done)
    assert "4 restored as at" in text
    assert "1 not, because a later change would be lost" in text
    assert "1 had that value already" in text
    assert "1 not known any more" in text
    assert re.search(r"raced\s?1\s?3 by bob at", text), text
    after = {**before, "raced": "3", "kept": "2", "constant": "7 kg"}
    assert await recorded.entries() == after, "what was not selected or changed since stays"
    audit = (await recorded.http.get("/v1/audit-log", params={"take": "9"})).json()
    assert sum(one["principal"] == "anna" and one["action"].startswith("data_sink.") for one in audit) == 2

    again = await restore(recorded, fields, "raced")
    assert again.status_code == 409
    assert (await restore(recorded, fields)).status_code == 400
    assert (await restore(recorded, {**fields, "form_token": "0" * 64}, "kept")).status_code == 403
    all_rows = await restore(recorded, fields, all="true")
    assert "1 restored" in plain(all_rows)
    assert (await recorded.entries())["kept"] == "1"


async def test_a_writer_restores_values_but_no_removals(settings: WorkspacedSettings, make_key: MakeKey) -> None:
    async with (
        running(settings) as app,
        visiting(app) as browser,
        api_client(app, make_key("bob")) as http,
    ):
        await sign_in(browser, make_key("pusher", "pusher"))
        recorded = await recorded_sink(browser, http)
        kept = (await http.get(recorded.history)).json()["knownFrom"].rstrip("Z")
        await recorded.write("constant", "8 kg")
        await recorded.write("new", "1")
        fields, page = await compared(recorded, kept)
        assert rows_of(page) == ["constant"], "an entry that was added would be deleted"
        assert (await restore(recorded, fields, "new")).status_code == 403
        assert (await restore(recorded, fields, all="true")).status_code == 200
        assert await recorded.entries() == {"constant": "7 kg", "new": "1"}


async def test_pages_say_where_a_value_comes_from(recorded: Recorded) -> None:
    origin = {
        "source": "bench",
        "file": "run-0001.csv",
        "run": "r-1",
        "pipeline": "bench-a3",
        "link": "https://d.example/p",
    }
    await recorded.write("a", "0")
    for row, value in enumerate("12", start=1):
        body = {"key": "a", "value": value, "origin": {**origin, "row": row}}
        assert (await recorded.http.post(f"{recorded.api}/mass", json=body)).is_success
    second = "from run-0001.csv row 2, pipeline bench-a3"
    entry = await recorded.browser.get(f"{recorded.page}/entries/a")
    assert f'<a href="https://d.example/p" rel="noreferrer"><bdi>{second}</bdi></a>' in entry.text
    assert "(source bench, run r-1)" in plain(entry)
    history = await recorded.text("entries/a/history")
    assert history.count(second) == 1
    assert history.count("from run-0001.csv row 1, pipeline bench-a3") == 2
    assert f'title="{second}"' in (await recorded.browser.get(recorded.page)).text
    assert second in plain(await recorded.browser.get("/ui/audit"))
    warning = (
        "The pipeline “bench-a3” wrote this entry, and overwrites your change when its source gives another value, or when a "
        "drift check repairs the difference. Its last value came from run-0001.csv row 2."
    )
    await recorded.write("b", "0")
    for value in "234":  # an edit does not end the pipeline
        for page in ("entries/a/edit", "entries/a/delete", "entries/a/history"):
            assert warning in await recorded.text(page), (value, page)
            assert "overwrites" not in await recorded.text(page.replace("/a/", "/b/"))
        assert 'data-fed="The pipeline “bench-a3”"' in (await recorded.browser.get(recorded.page)).text
        await recorded.write("a", value)
    assert f"None since its last change; {second} before" in await recorded.text("entries/a")
    assert (await recorded.http.patch(recorded.api, json={"protectFedEntries": True})).is_success
    protected = "wrote this entry, and this data sink protects it: change its source, or edit the data sink"
    assert protected in await recorded.text("entries/a/edit")
