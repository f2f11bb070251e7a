"""/openapi.json and /docs (contract G23)."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re

import httpx
import pytest

from workspaced.app import running
from workspaced.settings.model import WorkspacedSettings

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
async def test_both_are_open_to_every_caller_and_are_cached(http: httpx.AsyncClient, path: str) -> None:
    # contract G23, OP3, OP4
    del http.headers["x-api-key"]
    response = await http.get(path)
    assert response.status_code == 200
    assert response.headers["Cache-Control"].startswith("public")
    again = await http.get(path, headers={"If-None-Match": response.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = await http.head(path)
    assert (head.status_code, head.content, head.headers["ETag"]) == (200, b"", response.headers["ETag"])


async def test_the_page_runs_no_script_and_loads_nothing(http: httpx.AsyncClient) -> None:
    response = await http.get("/docs")
    style = re.search(r"<style>(.*?)</style>", response.text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert not re.search(r"<(script|link|img|iframe)|\bsrc=|style=|\bon[a-z]+=", response.text)
    targets = set(re.findall(r'href="([^"]+)"', response.text))
    assert {target for target in targets if not target.startswith("#")} == {"/openapi.json"}
    assert targets - {"/openapi.json"} <= {f"#{name}" for name in re.findall(r'\bid="([^"]+)"', response.text)}


async def test_the_page_has_every_operation_event_and_schema_of_the_document(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    ids = re.findall(r'\bid="([^"]+)"', (await http.get("/docs")).text)
    operations = [one["operationId"] for item in document["paths"].values() for one in item.values()]
    events = [item["post"]["operationId"] for item in document["webhooks"].values()]
    schemas = [f"schema-{name}" for name in document["components"]["schemas"]]
    assert set(ids) >= {*operations, *events, *schemas}
    assert len(ids) == len(set(ids))


async def test_the_page_can_be_disabled(settings: WorkspacedSettings) -> None:
    # contract G23
    async with running(dataclasses.replace(settings, docs=False)) as app:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            assert (await client.get("/docs")).status_code == 404
            assert (await client.get("/openapi.json")).status_code == 200
