"""The secret of upload links is encrypted if the service has an encryption key, and links stay valid after the change."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import pytest

from workspaced.app import running
from workspaced.security.secret_box import SecretBox
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact
from workspaced.storage.port import StorageUnusable

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


@pytest.mark.both_databases
async def test_a_host_with_another_key_or_none_does_not_start_unless_the_key_is_lost(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract H3
    key, first, before = make_key(), b"k" * 32, b""

    def serving(
        encryption_key: bytes | None, *, lost: bytes | None = None
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        fingerprint = SecretBox(lost).fingerprint or ""
        return _serving(
            dataclasses.replace(settings, encryption_key=encryption_key, lost_encryption_key=fingerprint), key
        )

    for other in (None, b"o" * 32):
        async with serving(first, lost=before) as http:
            workspace = (await http.post("/v1/workspace", json={"label": "Rocket"})).json()["id"]
            link = (await _link(http, workspace)).json()["uploadUrl"]
        recorded = f"WORKSPACED_ENCRYPTION_KEY .* encrypted with the key {SecretBox(first).fingerprint}"
        for lost in (None, b"l" * 32):
            with pytest.raises(StorageUnusable, match=recorded):
                async with serving(other, lost=lost):
                    pytest.fail("it started")
        async with serving(other, lost=first) as http:
            assert (await http.put(link, content=b"bytes")).json()["code"] == "bad_upload_link"
            link = (await _link(http, workspace)).json()["uploadUrl"]
        async with serving(other) as http:
            assert (await http.put(link, content=b"bytes")).is_success
        before = other or b""


async def test_the_fingerprint_in_the_database_differs_between_keys_and_is_not_the_key(
    settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    key = make_key()
    async with _serving(dataclasses.replace(settings, encryption_key=b"k" * 32), key):
        pass
    ((kept,),) = transact(
        settings.database, lambda tx: tx.all("SELECT value FROM fixed_setting WHERE name = 'encryption_key'")
    )
    assert kept == SecretBox(b"k" * 32).fingerprint != SecretBox(b"o" * 32).fingerprint
    assert (b"k" * 32).hex()[:8] not in kept
