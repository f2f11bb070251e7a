"""The work of every page of the service over a growing sink, in steps of SQLite's virtual machine.

The sink, its history, the audit log and the log of deliveries have N rows, then 4N. Each page must cost the same for both; only
the download of a whole sink may cost more.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from unittest.mock import Mock
from urllib.parse import urlencode

import httpx
import pytest

from tests.integration.workspaced.test_pages import OWN, form_token, sign_in, visiting
from tests.support.growing_service import SINK, fill, growing_service, growing_settings
from tests.support.sample_workspace import SampleWorkspace, create_sample_workspace
from tests.support.work_counter import RATIO, STEPS_COUNTED, Work, counting_connections
from workspaced.settings.model import Limits
from workspaced.ui import entries
from workspaced.ui.edit.routes import edit_routes
from workspaced.ui.routes import routes

N: Final = 1_500
SLACK: Final = 2_000
"""Steps that the service spends independently of a page."""
_WORKSPACE: Final = "/ui/workspaces/{workspace}"
_SINK: Final = f"{_WORKSPACE}/sinks/{{sink}}"
_ENTRY: Final = f"{_SINK}/entries/k000007"
_BLOCK: Final = f"{_WORKSPACE}/blocks/{{block}}"
_FILE: Final = f"{_WORKSPACE}/files/{{file}}"
_WEBHOOK: Final = "/ui/webhooks/{webhook}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A page by the name of its route. ``path`` has placeholders for ids. With ``form`` the form is sent.

    ``links``: how often the link to the next page is followed before the page is measured.
    """

    route: str
    path: str
    about: str = ""
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    form: Mapping[str, str] = dataclasses.field(default_factory=dict)
    links: int = 0

    def __str__(self) -> str:
        return f"{self.route} {self.about}".strip()


VIEWS: Final = (
    View(route="home", path="/ui"),
    View(route="workspaces", path="/ui/workspaces"),
    View(route="workspace", path=_WORKSPACE),
    View(route="sink", path=_SINK),
    *(
        View(route="sink", about=about, path=_SINK, query=query)
        for about, query in {
            "backwards": {"sort": "key-last"},
            "newest": {"sort": "newest"},
            "search that finds": {"search": "7"},
            "search that finds nothing": {"search": "nothing"},
            "search of the last key": {"search": "k005999"},
            "search of values that finds nothing": {"search": "nothing", "in": "value"},
            "search of both that finds nothing": {"search": "nothing", "in": "all"},
            "search backwards": {"search": "nothing", "sort": "key-last"},
            "prefix": {"prefix": "k0000"},
            "prefix backwards": {"prefix": "k0000", "sort": "key-last"},
            "prefix in natural order": {"prefix": "k00000", "sort": "natural"},
            "prefix by value": {"prefix": "k00000", "sort": "value-last"},
            "type that finds nothing": {"type": "nothing"},
            "values that find nothing": {"least": "1e9"},
            "too large for its order": {"sort": "author"},
        }.items()
    ),
    View(route="sink", about="tenth page", path=_SINK, links=9),
    View(route="search", path=f"{_WORKSPACE}/search"),
    View(route="search", about="finds", path=f"{_WORKSPACE}/search", query={"search": "7"}),
    View(route="search", about="finds nothing", path=f"{_WORKSPACE}/search", query={"search": "nothing"}),
    View(route="search", about="second page", path=f"{_WORKSPACE}/search", query={"search": "nothing"}, links=1),
    View(route="csv", about="whole", path=f"{_SINK}/entries.csv"),
    View(route="csv", about="page", path=f"{_SINK}/entries.csv", query={"take": "100"}),
    View(route="groups", path=f"{_SINK}/groups"),
    View(route="groups", about="second page", path=f"{_SINK}/groups", links=1),
    View(route="entry", path=_ENTRY),
    View(route="history", path=f"{_SINK}/history"),
    View(route="history", about="comparison", path=f"{_SINK}/history", query={"from": "{moment}"}),
    View(route="history", about="second page", path=f"{_SINK}/history", query={"from": "{moment}"}, links=1),
    View(route="entry_history", path=f"{_ENTRY}/history"),
    View(route="plot", path=f"{_SINK}/plot", query={"key": "{key}"}),
    View(route="blocks", path=f"{_WORKSPACE}/blocks"),
    View(route="block", path=_BLOCK),
    View(route="files", path=f"{_WORKSPACE}/files"),
    View(route="file", path=_FILE),
    View(route="download", path=f"{_FILE}/download"),
    View(route="audit", path="/ui/audit"),
    View(route="audit", about="none of an action", path="/ui/audit", query={"action": "webhook.*"}),
    View(route="audit", about="of a workspace", path="/ui/audit", query={"workspace": "{workspace}"}),
    View(route="audit", about="of old days", path="/ui/audit", query={"from": "1970-01-01", "to": "1970-01-01"}),
    View(route="audit", about="fourth page", path="/ui/audit", links=3),
    View(route="keys", path="/ui/keys"),
    View(route="event_types", path="/ui/webhooks/event-types"),
    View(route="webhooks", path="/ui/webhooks"),
    View(route="webhook", path=_WEBHOOK),
    View(route="webhook", about="failed", path=_WEBHOOK, query={"status": "failed"}),
    View(route="webhook", about="third page", path=_WEBHOOK, links=2),
    View(route="delivery", path=f"{_WEBHOOK}/deliveries/{{delivery}}"),
    View(route="create_workspace", path="/ui/workspaces/new"),
    View(route="edit_workspace", path=f"{_WORKSPACE}/edit"),
    View(route="delete_workspace", path=f"{_WORKSPACE}/delete"),
    View(route="create_sink", path=f"{_WORKSPACE}/new-sink"),
    View(route="edit_sink", path=f"{_SINK}/edit"),
    View(route="delete_sink", path=f"{_SINK}/delete"),
    View(route="create_entry", path=f"{_SINK}/new-entry"),
    View(route="edit_entry", path=f"{_ENTRY}/edit"),
    View(route="delete_entry", path=f"{_ENTRY}/delete"),
    View(route="import_table", path=f"{_SINK}/import"),
    View(
        route="import_table",
        about="preview",
        path=f"{_SINK}/import",
        form={"table": "".join(f"k{number * 13:06d}\t2\n" for number in range(100))},
    ),
    View(route="create_block", path=f"{_WORKSPACE}/blocks/new"),
    View(route="edit_block", path=f"{_BLOCK}/edit"),
    View(route="delete_block", path=f"{_BLOCK}/delete"),
    View(route="edit_metadata", path=f"{_FILE}/metadata"),
    View(route="edit_file", path=f"{_FILE}/edit"),
    View(route="delete_file", path=f"{_FILE}/delete"),
    View(route="create_webhook", path="/ui/webhooks/new"),
    View(route="edit_webhook", path=f"{_WEBHOOK}/edit"),
    View(route="delete_webhook", path=f"{_WEBHOOK}/delete"),
)
WHOLE: Final = {"csv whole"}
"""Views that return every entry."""


async def _history(http: httpx.AsyncClient, sample: SampleWorkspace, rows: int) -> str:
    """Keep the history of the sink, change every entry, and return a moment before that."""
    kept = f"/v1/workspace/{sample.workspace}/data-sink-history/{sample.sink}"
    response = await http.patch(kept, json={"changes": 10, "days": 30})
    assert response.status_code == 200, response.text
    sink = SINK.format(workspace=sample.workspace, sink=sample.sink)
    began = ""
    for value in ("2", "3"):
        for start in range(0, rows, N):
            entries = [{"key": f"k{index:06d}", "value": value} for index in range(start, start + N)]
            done = await http.post(f"{sink}/mass", json=entries, headers={"Prefer": "return=minimal"})
            assert done.status_code == 200, done.text
        began = began or (await http.get(kept)).json()["knownFrom"]
    return began.rstrip("Z")


async def _sent(browser: httpx.AsyncClient, view: View, path: str, token: str) -> httpx.Response:
    if view.form:
        response = await browser.post(path, data={"form_token": token, **view.form}, headers=OWN)
    else:
        response = await browser.get(path)
    assert response.status_code == (303 if view.route == "home" else 200), (view, response.text)
    return response


async def _measured(data: Path, rows: int, steps: Work) -> dict[str, int]:
    found: dict[str, int] = {}
    async with growing_service(data) as (app, http), visiting(app) as browser:
        sample = await create_sample_workspace(http, tried=True)
        await fill(http, growing_settings(data), sample, rows)
        names = {**dataclasses.asdict(sample), "moment": await _history(http, sample, rows)}
        await sign_in(browser, http.headers["x-api-key"])
        token = await form_token(browser)
        for view in VIEWS:
            query = urlencode({name: text.format(**names) for name, text in view.query.items()})
            path = view.path.format(**names) + (f"?{query}" if query else "")
            for _ in range(view.links):
                following = re.search(r'rel="next" href="([^"]*)"', (await browser.get(path)).text)
                assert following, (view, path)
                path = following[1].replace("&amp;", "&")
            await app.run_maintenance()
            steps.reset()
            await _sent(browser, view, path, token)
            found[str(view)] = steps.counts().get(STEPS_COUNTED, 0)
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[int, int]]:
    with counting_connections() as steps, pytest.MonkeyPatch.context() as patched:
        patched.setattr(entries, "SEARCH_SECONDS", 0.0)  # what a search does in its time depends on the machine
        small, large = (
            asyncio.run(_measured(tmp_path_factory.mktemp("pages") / "data", rows, steps)) for rows in (N, 4 * N)
        )
    return {name: (small[name], large[name]) for name in small}


def test_every_page_is_measured() -> None:
    known = {route.name for route in (*routes(Mock()), *edit_routes(Limits(), Mock())) if route.method == "GET"} - {
        "live"
    }  # its stream never ends; it reads what the page reads
    assert {view.route for view in VIEWS} == known


@pytest.mark.parametrize("name", [str(view) for view in VIEWS])
def test_the_work_of_a_page_does_not_grow_with_the_stored_data(
    measured: Mapping[str, tuple[int, int]], name: str
) -> None:
    small, large = measured[name]
    if name in WHOLE:
        assert large <= RATIO * small, (small, large)
    else:
        assert large <= 1.25 * small + SLACK, (small, large)
