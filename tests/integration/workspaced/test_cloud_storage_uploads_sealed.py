"""The secret of upload links is encrypted if the service has an encryption key, and links stay valid after the change."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from workspaced.app import running
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact

FILES = "/v1/cloud-storage"


@asynccontextmanager
async def _serving(settings: WorkspacedSettings, key: str) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        running(settings) as app,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://s", headers={"x-api-key": key}
        ) as http,
    ):
        yield http


def _kept(settings: WorkspacedSettings) -> str:
    rows = transact(
        settings.database, lambda tx: tx.all("SELECT value FROM fixed_setting WHERE name = 'upload_link_secret'")
    )
    return str(rows[0][0])


async def _link(http: httpx.AsyncClient, workspace: str) -> httpx.Response:
    return await http.post(f"{FILES}/upload-link", json={"workspaceId": workspace, "fileName": "a.bin"})


@pytest.mark.both_databases
async def test_the_first_start_with_a_key_encrypts_the_secret_and_earlier_links_stay_valid(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    key = make_key()
    async with _serving(settings, key) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()["id"]
        before = (await _link(http, workspace)).json()["uploadUrl"]
    plain = _kept(settings)
    sealing = dataclasses.replace(settings, encryption_key=b"k" * 32)
    async with _serving(sealing, key) as http:
        sealed = _kept(settings)
        assert plain not in sealed
        assert (await http.put(before, content=b"bytes")).is_success
        after = (await _link(http, workspace)).json()["uploadUrl"]
    async with _serving(sealing, key) as http:
        assert _kept(settings) == sealed
        assert (await http.put(after, content=b"bytes")).is_success


async def test_with_another_key_or_none_links_are_unavailable_and_everything_else_works(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    key = make_key()
    sealing = dataclasses.replace(settings, encryption_key=b"k" * 32)
    async with _serving(sealing, key) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()["id"]
        link = (await _link(http, workspace)).json()["uploadUrl"]
    for other in (None, b"o" * 32):
        async with _serving(dataclasses.replace(settings, encryption_key=other), key) as http:
            for refused in (await _link(http, workspace), await http.put(link, content=b"bytes")):
                assert (refused.status_code, refused.json()["code"]) == (503, "secrets_sealed")
                assert "WORKSPACED_ENCRYPTION_KEY" in refused.json()["detail"]
            params = {"workspaceId": workspace, "fileName": "b.bin"}
            assert (await http.post(FILES, params=params, content=b"x")).status_code == 201
