"""What was made with a key ends with it: upload links, sessions of the pages, and requests with a slow body.

Live pages are in `tests/process/test_workspaced_live.py`, deliveries in `deliveries/test_deliveries.py`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.integration.workspaced.conftest import MakeKey
from tests.integration.workspaced.test_edit_pages import hidden_of
from tests.integration.workspaced.test_pages import OWN
from tests.support.cloud_files import FILES
from workspaced.core.timestamps import stamp
from workspaced.security import key_store
from workspaced.settings.model import WorkspacedSettings
from workspaced.storage.factory import transact
from workspaced.storage.port import Transaction

Ending = Callable[[Transaction, str], object]


def _now() -> int:
    return time.time_ns() // 1_000_000


def revoked(tx: Transaction, key_id: str) -> None:
    key_store.revoke_key(tx, key_id=key_id, now=_now())


def rotated(tx: Transaction, key_id: str) -> None:
    key_store.rotate_key(tx, key_id=key_id, now=_now(), overlap_ms=0)


def expired(tx: Transaction, key_id: str) -> None:
    tx.run("UPDATE api_key SET expires_at = 1 WHERE id = :id", {"id": key_id})


def with_another_role(tx: Transaction, key_id: str) -> None:
    del key_id
    tx.run("UPDATE access_grant SET role = 'pusher' WHERE principal = 'svc:bench'")


ENDINGS = [revoked, rotated, expired, with_another_role]


@pytest.fixture
async def browser(transport: httpx.ASGITransport) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a key."""
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        yield client


@pytest.mark.both_databases
@pytest.mark.parametrize("end", ENDINGS, ids=lambda end: str(end.__name__))
async def test_what_was_made_with_a_key_ends_with_it(
    browser: httpx.AsyncClient,
    workspace: dict[str, Any],
    settings: WorkspacedSettings,
    make_key: Callable[..., str],
    end: Ending,
) -> None:
    # contract A4, C1
    key = make_key(name="svc:bench", role="editor")
    body = {"workspaceId": workspace["id"], "fileName": "a.bin"}
    offers = [await browser.post(f"{FILES}/upload-link", json=body, headers={"x-api-key": key}) for _ in "ab"]
    first, second = (offer.json()["uploadUrl"] for offer in offers)
    files = f"/ui/workspaces/{workspace['id']}/files"
    await browser.post("/ui/sign-in", data={"key": key})
    assert (await browser.put(first, content=b"x")).status_code == 200
    assert (await browser.get(files)).status_code == 200
    transact(settings.database, lambda tx: end(tx, key.split("_")[1]))
    late = await browser.put(second, content=b"x")
    assert (late.status_code, late.json()["code"]) == (403, "upload_link_revoked")
    assert (await browser.get(files)).status_code in {303, 403}


async def test_a_link_of_a_key_that_ends_during_the_transfer_stores_nothing(
    http: httpx.AsyncClient, workspace: dict[str, Any], settings: WorkspacedSettings, make_key: Callable[..., str]
) -> None:
    # contract C1
    key = make_key(name="svc:bench", role="editor")
    body = {"workspaceId": workspace["id"], "fileName": "a.bin"}
    link = (await http.post(f"{FILES}/upload-link", json=body, headers={"x-api-key": key})).json()

    async def parts() -> AsyncIterator[bytes]:
        yield b"first"
        transact(settings.database, lambda tx: revoked(tx, key.split("_")[1]))
        yield b"second"

    late = await http.put(link["uploadUrl"], content=parts())
    assert (late.status_code, late.json()["code"]) == (403, "upload_link_revoked")
    completed = await http.post(f"{FILES}/upload-complete/{link['id']}")
    assert completed.json()["code"] == "not_uploaded"


@pytest.mark.parametrize(("end", "status"), [(revoked, 401), (with_another_role, 403)])
@pytest.mark.parametrize("kind", ["json", "file", "form"])
async def test_a_key_that_ends_while_the_body_arrives_changes_nothing(
    http: httpx.AsyncClient,
    browser: httpx.AsyncClient,
    *,
    sink: str,
    workspace: dict[str, Any],
    settings: WorkspacedSettings,
    make_key: MakeKey,
    kind: str,
    end: Ending,
    status: int,
) -> None:
    # contract A4
    key = make_key(name="svc:bench", role="editor")
    headers = {"x-api-key": key, "ClientId": "tests"}
    path, body = sink, b'{"label": "Late"}'
    if kind == "file":
        path, body = f"{FILES}?workspaceId={workspace['id']}&fileName=late.txt", b"late bytes"
    if kind == "form":
        await browser.post("/ui/sign-in", data={"key": key})
        path = f"/ui/workspaces/{workspace['id']}/sinks/SNK-1/delete"
        body = urlencode(await hidden_of(browser, path)).encode()
        headers = {**OWN, "Content-Type": "application/x-www-form-urlencoded"}

    async def parts() -> AsyncIterator[bytes]:
        yield body[:5]
        transact(settings.database, lambda tx: end(tx, key.split("_")[1]))
        yield body[5:]

    method = "PATCH" if kind == "json" else "POST"
    assert (await browser.request(method, path, content=parts(), headers=headers)).status_code == status
    assert (await http.get(sink)).json()["label"] == "Mass budget"
    assert (await http.get(FILES, params={"workspaceId": workspace["id"]})).json() == []


async def test_an_upload_is_recorded_at_the_time_when_all_bytes_have_arrived(
    http: httpx.AsyncClient, workspace: dict[str, Any]
) -> None:
    # contract A4
    arrived = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal arrived
        yield b"first"
        began = arrived = _now()
        while arrived == began:
            arrived = _now()
        yield b"second"

    upload = {"workspaceId": workspace["id"], "fileName": "slow.txt"}
    file = (await http.post(FILES, params=upload, content=parts())).json()
    assert arrived
    assert file["createdAt"] >= stamp(arrived)
